import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));

const chunks = "3\r\nabc\r\n0\r\n\r\n";

/** Headers and a body that two parsers could frame differently. */
const ambiguous: [name: string, framing: string, body: string][] = [
  ["a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"],
  ["chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"],
  ["an unknown coding", "Transfer-Encoding: xchunked", chunks],
  ["a coding after the chunks", "Transfer-Encoding: chunked, identity", chunks],
  ["a coding before the chunks", "Transfer-Encoding: gzip, chunked", chunks],
  ["no coding at all", "Transfer-Encoding: identity", chunks],
  ["chunks in chunks", "Transfer-Encoding: chunked, chunked", chunks],
  ["quoted chunks", 'Transfer-Encoding: "chunked"', chunks],
  ["chunks after a vertical tab", "Transfer-Encoding: \u000bchunked", chunks],
  ["chunks with a parameter", "Transfer-Encoding: chunked;q=1", chunks],
  ["a space before the colon", "Transfer-Encoding : chunked", chunks],
  ["two codings in two lines", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", chunks],
  ["a folded line", "Transfer-Encoding:\r\n chunked", chunks],
  ["two lengths", "Content-Length: 3\r\nContent-Length: 0", "abc"],
  ["two lengths in one line", "Content-Length: 3, 3", "abc"],
  ["a length with a sign", "Content-Length: +3", "abc"],
  ["a negative length", "Content-Length: -3", "abc"],
  ["a hexadecimal length", "Content-Length: 0x3", "abc"],
  ["an empty length", "Content-Length: ", "abc"],
  ["a length with trailing text", "Content-Length: 3a", "abc"],
  ["a length that overflows", "Content-Length: 99999999999999999999", "abc"],
  ["a chunk size with a prefix", "Transfer-Encoding: chunked", "0x3\r\nabc\r\n0\r\n\r\n"],
  ["a negative chunk size", "Transfer-Encoding: chunked", "-3\r\nabc\r\n0\r\n\r\n"],
  ["chunks that end with a bare line feed", "Transfer-Encoding: chunked", "3\nabc\n0\n\n"],
  ["a chunk longer than its size", "Transfer-Encoding: chunked", "3\r\nabcdef\r\n0\r\n\r\n"],
  ["a chunk size that overflows", "Transfer-Encoding: chunked", "ffffffffffffffffff\r\nabc\r\n0\r\n\r\n"],
  ["a chunk size that wraps around", "Transfer-Encoding: chunked", "10000000000000003\r\nabc\r\n0\r\n\r\n"],
  ["a chunk without a size", "Transfer-Encoding: chunked", "\r\nabc\r\n0\r\n\r\n"],
];

describe("request smuggling", () => {
  test.each(ambiguous)("by %s is refused, and the connection is closed", async (_, framing, body) => {
    backend.clear();
    const head = `POST /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\n${framing}\r\n\r\n`;
    const hidden = `GET /v1/hidden HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\n\r\n`;
    const client = await connectRaw(gate.url);
    client.send(head + body + hidden);
    await client.closed();
    const received = client.received().toString();
    // If the error is in a later part of the body, no response is sent.
    expect(received === "" || received.startsWith("HTTP/1.1 400 ")).toBe(true);
    expect(received.match(/HTTP\/1\.1/g)?.length ?? 0).toBeLessThan(2);
    expect(backend.requests().map(({ path }) => path)).not.toContain("/v1/hidden");
  });

  // Bun reads them as one, and has both in the header.
  test.each(["text/plain", "application/json"])("by two equal lengths of %s is refused too", async (type) => {
    backend.clear();
    const client = await connectRaw(gate.url);
    const lengths = "Content-Length: 3\r\nContent-Length: 3";
    client.send(
      `POST /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Type: ${type}\r\n${lengths}\r\n\r\nabc`,
    );
    expect((await client.head()).status).toBe(400);
    expect(await client.json()).toMatchObject({ error: { type: "invalid_request_error", code: "invalid_request" } });
    expect(backend.requests()).toEqual([]);
    client.close();
  });

  test("by headers that Connection names does not remove the framing of the backend's request", async () => {
    backend.clear();
    const client = await connectRaw(gate.url);
    const headers = {
      "x-api-key": gate.key,
      Connection: "content-length, host, x-api-key",
      "Content-Type": "text/plain",
    };
    client.request("POST", "/v1/files", headers, "abc");
    expect(await client.text()).toBe("abc");
    expect((await backend.nextRequest()).bodyBytes).toBe(3);
    client.close();
  });
});
