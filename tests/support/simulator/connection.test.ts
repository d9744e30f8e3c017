import { afterEach, beforeEach, expect, test } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { type Simulator, startSimulator } from "./simulator.ts";
import { connectRaw } from "../raw-client.ts";
import { pollUntil } from "../poll-until.ts";

let simulator: Simulator;
beforeEach(() => {
  simulator = startSimulator();
});
afterEach(() => simulator.stop());

test("one connection carries several requests in sequence", async () => {
  const client = await connectRaw(simulator.url);
  for (const target of ["/v1/first", "/v1/second"]) {
    client.request("GET", target);
    expect(await client.json()).toMatchObject({ method: "GET", target });
    client.nextResponse();
  }
  expect(simulator.requests().map(({ connection }) => connection)).toEqual([1, 1]);
  expect(simulator.connections()).toBe(1);
  client.close();
  await pollUntil(() => simulator.connections() === 0);
});

test("pipelined requests get their responses in order", async () => {
  const client = await connectRaw(simulator.url);
  simulator.scriptNext("slow-head=50ms");
  const request = (target: string) => `GET ${target} HTTP/1.1\r\nHost: a\r\n\r\n`;
  client.send(request("/v1/first") + request("/v1/second").slice(0, 10));
  client.send(request("/v1/second").slice(10));
  expect(await client.json()).toHaveProperty("target", "/v1/first");
  client.nextResponse();
  expect(await client.json()).toHaveProperty("target", "/v1/second");
  client.close();
});

test("a client that sends Connection: close gets its response and then the end of the connection", async () => {
  const client = await connectRaw(simulator.url);
  client.request("GET", "/v1/models", { Connection: "close" });
  expect((await client.head()).header("connection")).toBe("close");
  expect(await client.ended()).toBe("complete");
  await client.closed();
});

test("a HEAD request gets only the head", async () => {
  const client = await connectRaw(simulator.url);
  client.request("HEAD", "/v1/models");
  expect(Number((await client.head()).header("content-length"))).toBeGreaterThan(10);
  client.nextResponse();
  client.request("GET", "/v1/models");
  expect(await client.json()).toHaveProperty("object", "list");
  client.close();
});

test("a client that sends Expect: 100-continue gets a 100", async () => {
  const client = await connectRaw(simulator.url);
  client.send("POST /v1/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
  await pollUntil(() => client.interim().length === 1);
  client.send("hello");
  expect(await client.text()).toBe("hello");
  client.close();
});

test("a large body is counted and hashed, not kept", async () => {
  const body = randomBytes(5 * 1024 * 1024);
  const client = await connectRaw(simulator.url);
  client.request("POST", "/v1/upload", {}, body);
  expect(await client.json()).toMatchObject({
    body_bytes: body.length,
    body_sha256: createHash("sha256").update(body).digest("hex"),
  });
  expect(simulator.requests()[0]?.body().length).toBeLessThanOrEqual(1024 * 1024);
  client.close();
});

test("pause-body delays reading the body", async () => {
  const client = await connectRaw(simulator.url);
  const body = Buffer.alloc(16 * 1024 * 1024);
  client.request("POST", "/v1/upload", { "x-simulate": "pause-body=200ms" }, body);
  const head = await simulator.waitFor(({ type }) => type === "head");
  const whole = await simulator.waitFor(({ type }) => type === "request");
  expect(whole.at - head.at).toBeGreaterThanOrEqual(199);
  expect(await client.json()).toHaveProperty("body_bytes", body.length);
  client.close();
});

test("early-response responds before the body arrives and ends the connection", async () => {
  const client = await connectRaw(simulator.url);
  client.send(
    "POST /v1/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\nx-simulate: early-response; status=413\r\n\r\nab",
  );
  expect((await client.head()).status).toBe(413);
  expect(await client.ended()).toBe("complete");
  await client.closed();
});

test("a client that leaves while it sends its body counts as aborted", async () => {
  const client = await connectRaw(simulator.url);
  client.send("POST /v1/upload HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nabc");
  await simulator.waitFor(({ type }) => type === "head");
  client.close();
  await simulator.waitFor(({ type }) => type === "aborted");
  expect(simulator.stats()).toMatchObject({ open: 0, aborted: 1 });
});

test("bytes that are not HTTP get a 400", async () => {
  const client = await connectRaw(simulator.url);
  client.send("NOT HTTP\r\n\r\n");
  expect((await client.head()).status).toBe(400);
  await client.closed();
});

test("a handler writes the response itself, and the connection stays usable", async () => {
  simulator.handle(async (request, wire) => {
    wire.write(`HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n${request.method}`);
    await client.bodyContaining(request.method);
    wire.write("abc");
  });
  const client = await connectRaw(simulator.url);
  for (const method of ["GET", "PUT"]) {
    client.request(method, "/v1/x");
    expect(await client.text()).toBe(`${method}abc`);
    client.nextResponse();
  }
  simulator.handle(undefined);
  client.request("GET", "/v1/models");
  expect(await client.json()).toHaveProperty("object", "list");
  expect(simulator.stats()).toMatchObject({ finished: 3, broken: 0 });
  client.close();
});

test("a handler that resets the connection counts as broken", async () => {
  simulator.handle((_, wire) => {
    wire.write("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
    wire.reset();
  });
  const client = await connectRaw(simulator.url);
  client.request("GET", "/v1/x");
  expect(await client.ended()).toBe("reset");
  expect(simulator.stats()).toMatchObject({ finished: 0, broken: 1, aborted: 0 });
});
