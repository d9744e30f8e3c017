import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_NONSTREAM_READ_TIMEOUT: "2" }));
beforeEach(() => backend.clear());

/** Sends a head and only the beginning of its body. */
async function begin(framing: string, begun: string, type = "application/json"): Promise<RawClient> {
  const client = await connectRaw(gate.url);
  client.send(
    `POST /v1/anything HTTP/1.1\r\nHost: h\r\nx-api-key: ${gate.key}\r\nContent-Type: ${type}\r\n${framing}\r\n\r\n${begun}`,
  );
  return client;
}

/** How long the slow client pauses: longer than the read timeout, which applies to the backend and not to the client. */
const pauseMs = 3000;

describe("a body that the client sends slowly", () => {
  test.each([
    ["of a known length", "Content-Length: 13", '{"model":', '"m"}'],
    ["in chunks", "Transfer-Encoding: chunked", '9\r\n{"model":\r\n', '4\r\n"m"}\r\n0\r\n\r\n'],
  ])("%s reaches the backend once it is complete, however long that takes", async (_, framing, first, rest) => {
    const client = await begin(framing, first);
    await Bun.sleep(pauseMs);
    expect(backend.requests()).toEqual([]);
    client.send(rest);
    expect((await client.head()).status).toBe(200);
    expect(Buffer.from((await backend.nextRequest()).body()).toString()).toBe('{"model":"m"}');
    client.close();
  });

  test("that is streamed reaches the backend as it arrives, however long that takes", async () => {
    const client = await begin("Content-Length: 10", "hello", "application/octet-stream");
    await backend.waitFor(({ type }) => type === "head");
    await Bun.sleep(pauseMs);
    client.send("world");
    expect((await client.head()).status).toBe(200);
    expect(Buffer.from((await backend.nextRequest()).body()).toString()).toBe("helloworld");
    client.close();
  });
});
