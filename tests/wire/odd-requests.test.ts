import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));
beforeEach(() => backend.clear());

const chat = '{"model":"m","stream":true,"max_tokens":3,"messages":[{"role":"user","content":"Hi"}]}';

async function send(bytes: string): Promise<RawClient> {
  const client = await connectRaw(gate.url);
  client.send(bytes);
  return client;
}

/** A request with the key and the given headers. */
const request = (line: string, headers: string[] = [], body = ""): string =>
  [line, "Host: h", `x-api-key: ${gate.key}`, ...headers, "", body].join("\r\n");

/** Sends another request on the same connection. */
async function expectReusable(client: RawClient): Promise<void> {
  client.nextResponse();
  client.request("GET", "/v1/reused", { "x-api-key": gate.key });
  expect((await client.head()).status).toBe(200);
  expect(await client.text()).toContain("/v1/reused");
  client.close();
}

describe("an HTTP/1.0 client", () => {
  test("gets a complete response, ended by its length and by the connection", async () => {
    const client = await send(request("GET /v1/anything HTTP/1.0"));
    expect((await client.head()).status).toBe(200);
    expect(await client.text()).toContain("/v1/anything");
    await client.closed();
  });

  test("gets a stream without chunks, ended by the connection", async () => {
    const client = await send(request("POST /v1/chat/completions HTTP/1.0", [`Content-Length: ${chat.length}`], chat));
    const head = await client.head();
    expect(head.header("transfer-encoding")).toBeUndefined();
    expect(await client.ended()).toBe("complete");
    expect(await client.text()).toEndWith("data: [DONE]\n\n");
  });

  test("sees a stream that the backend broke end with a reset, the only sign that HTTP/1.0 has", async () => {
    const headers = [`Content-Length: ${chat.length}`, "x-simulate: gap=300ms@1; die@2"];
    const client = await send(request("POST /v1/chat/completions HTTP/1.0", headers, chat));
    expect(await client.ended()).toBe("reset");
    expect(await client.text()).toContain('"code":"upstream_unreachable"');
  });

  test("must send a Host too", async () => {
    const client = await send(`GET /v1/anything HTTP/1.0\r\nx-api-key: ${gate.key}\r\n\r\n`);
    expect((await client.head()).status).toBe(400);
    client.close();
  });
});

describe("a client's Connection: close", () => {
  test.each([
    ["after a whole response", "GET /v1/anything HTTP/1.1", ""],
    ["after a stream", "POST /v1/chat/completions HTTP/1.1", chat],
  ])("is respected %s", async (_, line, body) => {
    const client = await send(request(line, ["Connection: close", `Content-Length: ${body.length}`], body));
    expect(await client.ended()).toBe("complete");
    await client.closed();
  });

  test("is respected after an error of Tollgate's", async () => {
    const client = await send("GET /v1/anything HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    expect((await client.head()).status).toBe(401);
    await client.closed();
  });
});

describe("Expect: 100-continue", () => {
  test("gets a 100 and is not forwarded to the backend", async () => {
    const client = await send(
      request("POST /v1/files HTTP/1.1", ["Content-Type: text/plain", "Expect: 100-continue", "Content-Length: 3"]),
    );
    await pollUntil(() => client.interim().length > 0);
    client.send("abc");
    expect(await client.text()).toBe("abc");
    expect(client.interim().map(({ status }) => status)).toEqual([100]);
    expect((await backend.nextRequest()).header("expect")).toBeUndefined();
    await expectReusable(client);
  });
});

describe("a body", () => {
  // RFC 9110 section 9.3.1 gives such a body no meaning, and the runtime cannot send it.
  test.each(["GET", "HEAD"])("of a %s is dropped and not parsed as a request", async (method) => {
    const smuggled = request("GET /v1/smuggled HTTP/1.1");
    const client = await connectRaw(gate.url);
    client.request(method, "/v1/anything", { "x-api-key": gate.key }, smuggled);
    expect((await client.head()).status).toBe(200);
    await client.ended();
    await expectReusable(client);
    expect(backend.requests().map(({ path, bodyBytes }) => [path, bodyBytes])).toEqual([
      ["/v1/anything", 0],
      ["/v1/reused", 0],
    ]);
  });

  test("of a refused request is not read and not parsed as a request", async () => {
    const smuggled = request("GET /v1/smuggled HTTP/1.1");
    for (const refused of [`POST /v1/files HTTP/1.1\r\nHost: h\r\n`, request("TRACE /v1/x HTTP/1.1").slice(0, -2)]) {
      const client = await send(`${refused}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`);
      expect((await client.head()).status).toBeWithin(401, 406);
      await client.ended();
      await expectReusable(client);
    }
    expect(backend.requests().map(({ path }) => path)).toEqual(["/v1/reused", "/v1/reused"]);
  });

  test("that is too large gets a 413 while it is still arriving", async () => {
    const length = 128 * 1024 * 1024 + 1;
    const client = await send(
      request(
        "POST /v1/responses HTTP/1.1",
        ["Content-Type: application/json", `Content-Length: ${length}`],
        "x".repeat(1e6),
      ),
    );
    expect((await client.head()).status).toBe(413);
    client.send("x".repeat(1e6));
    expect(await client.json()).toMatchObject({ error: { code: "body_too_large" } });
    client.reset();
  });

  test("whose response came before the backend had read it does not end up in the next request", async () => {
    const headers = ["Content-Type: text/plain", "x-simulate: early-response", "Content-Length: 100000"];
    for (let round = 0; round < 5; round++) {
      const client = await send(request("POST /v1/files HTTP/1.1", headers, "x".repeat(1000)));
      expect((await client.head()).status).toBe(200);
      await client.ended();
      client.send("x".repeat(99_000));
      await expectReusable(client);
    }
  });
});

describe("a request head", () => {
  test.each([
    ["of 15 KB passes", 150, 200],
    ["of more than 16 KB is refused", 175, 431],
  ])("%s", async (_, longHeaders, status) => {
    const headers = Array.from({ length: longHeaders }, (__, index) => `x-a${index}: ${"v".repeat(90)}`);
    const client = await send(request("GET /v1/anything HTTP/1.1", headers));
    expect((await client.head()).status).toBe(status);
    client.close();
  });

  test.each([
    [198, 200],
    [199, 431],
  ])("of %i header fields gets %i", async (count, status) => {
    const head = request("GET /v1/anything HTTP/1.1");
    const own = head.trim().split("\r\n").length - 1;
    const headers = Array.from({ length: count - own }, (__, index) => `a${index}: 1`);
    const client = await send(request("GET /v1/anything HTTP/1.1", headers));
    expect((await client.head()).status).toBe(status);
    client.close();
  });

  test.each(["\r\n", "\n"])("after an empty line (%j) gets 400", async (line) => {
    const client = await send(line + request("GET /v1/anything HTTP/1.1"));
    expect((await client.head()).status).toBe(400);
    await client.closed();
  });

  test.each([
    ["PROPFIND", 405],
    ["QUERY", 405],
    ["BREW", undefined],
    ["get", undefined],
  ])("with the verb %s gets %p, or the connection ends", async (verb, status) => {
    const client = await send(request(`${verb} /v1/anything HTTP/1.1`));
    if (status === undefined) {
      await client.closed();
      expect(client.received()).toBeEmpty();
    } else expect((await client.head()).status).toBe(status);
    client.close();
    expect(backend.requests()).toEqual([]);
  });

  test.each(["HTTP/1.2", "HTTP/2.0", "HTTP/0.9"])("of %s is refused", async (version) => {
    const client = await send(request(`GET /v1/anything ${version}`));
    expect((await client.head()).status).toBe(505);
    client.close();
  });

  test.each(["\u0016\u0003\u0001\u0002\u0000\u0001", "SSH-2.0-OpenSSH_9.6\r\n\r\n", "\r\n\r\n\r\nx\r\n\r\n"])(
    "that is not HTTP (%p) ends the connection",
    async (bytes) => {
      const client = await send(bytes);
      await client.closed();
    },
  );
});

test("trailers of a request are refused", async () => {
  const client = await send(request("POST /v1/anything HTTP/1.1", ["Transfer-Encoding: chunked"]));
  client.send("3\r\nabc\r\n0\r\nx-sum: 1\r\n\r\n");
  expect((await client.head()).status).toBe(400);
  await client.closed();
});

describe("a pipelined request", () => {
  // Bun ends the connection rather than mix up the responses (1.4.5).
  test("ends the connection and both responses", async () => {
    const client = await send(request("GET /v1/a HTTP/1.1", ["x-simulate: slow-head=forever"]));
    await backend.nextRequest();
    client.send(request("GET /v1/b HTTP/1.1"));
    await client.closed();
    expect(client.received().toString()).toBe("");
    expect(backend.requests().map(({ path }) => path)).toEqual(["/v1/a"]);
    expect((await gate.waitForLog(({ path }) => path === "/v1/a"))["outcome"]).toBe("client_left");
  });
});

describe("a credential that is sent twice", () => {
  test.each([
    ["Authorization: Bearer KEY", "Authorization: Bearer wrong"],
    ["Authorization: Bearer wrong", "Authorization: Bearer KEY"],
    ["x-api-key: KEY", "x-api-key: wrong"],
    ["x-api-key: wrong", "x-api-key: KEY"],
  ])("as %p and %p is refused", async (first, second) => {
    const lines = [first, second].map((line) => line.replace("KEY", gate.key));
    const client = await send(`GET /v1/anything HTTP/1.1\r\nHost: h\r\n${lines.join("\r\n")}\r\n\r\n`);
    expect((await client.head()).status).toBe(401);
    expect(backend.requests()).toEqual([]);
    client.close();
  });
});
