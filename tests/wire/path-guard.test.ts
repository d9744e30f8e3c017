import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: `${backend.url}/tenant` }));

/** Sends a request target exactly as given. */
async function statusOf(target: string, options: { host?: string; key?: string } = {}): Promise<[number, string]> {
  const client = await connectRaw(gate.url);
  const { host = "gate.example", key = gate.key } = options;
  client.send(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`);
  const { status } = await client.head();
  const body = await client.text();
  client.close();
  return [status, body];
}

const hostile = [
  "/v1/..",
  "/v1/../",
  "/v1/../api/keys",
  "/v1/a/../b",
  "/v1/a/../../api/keys",
  "/v1/%2e%2e/api",
  "/v1/%2E%2e/api",
  "/v1/.%2e/api",
  "/v1/%252e%252e/api",
  "/v1/%25252e%25252e/api",
  "/v1/%u002e%u002e/api",
  "/v1/.%U002E/api",
  "/v1/%25u002e%u002e/api",
  "/v1/%25%32%65%25%32%65/api",
  "/v1/%%75002e./api",
  "/v1/%%32%65%%32%65/api",
  `/v1/${"%2525252525252525252e".repeat(2)}/api`,
  // Encoded more often than anybody honest does.
  `/v1/%${"25".repeat(7000)}41`,
  "/v1/%u002e%u002e%u002fapi",
  "/v1/%u002e%u002e\\api",
  // Of these, Bun's parameters have lost what follows the `%`.
  "/v1/a%../b",
  "/v1/%..",
  "/v1/a%.%2e/b",
  "/v1/a%\\../b",
  "/v1/a%\\%2e%2e/b",
  "/v1/%..%\\../b",
  "/v1/a..b",
  "/v1/a\\..\\b",
  "/v1/..\\api",
  "/v1/a%5c..%5cb",
  "/v1/..%2fapi",
  "/v1/..;/api",
  "/v1//../a",
  "/v1/a//../b",
  "/v1/a/../b/",
  "/v1/a/b/..//",
  "/x/../v1/models",
  "/./v1/models",
  "/%2e/v1/models",
  "http://other.example/v1/a/../b",
  `/v1/${"a/".repeat(15)}..`,
  `/v1/${"a/".repeat(63)}..`,
  `/v1/${"a/".repeat(70)}../b`,
  "/v1/a/////../b",
];

describe("a path with two dots in a row", () => {
  test.each(hostile)("is refused: %s", async (target) => {
    backend.clear();
    const [status, body] = await statusOf(target);
    expect(status).toBe(400);
    expect(JSON.parse(body)).toMatchObject({ type: "error", error: { code: "invalid_path" } });
    expect(backend.requests()).toEqual([]);
  });

  test.each([
    "/v1/100%",
    "/v1/100%.txt",
    "/v1/a%zz/b",
    "/v1/caf%e9.txt",
    "/v1/%c0%ae%c0%ae/b",
    "/v1/%u02e%u02e",
    "/v1/%uff0e%uff0e",
  ])("is not what %s has, though it cannot be decoded", async (target) => {
    backend.clear();
    expect((await statusOf(target))[0]).toBe(200);
    expect((await backend.nextRequest()).target).toBe(`/tenant${target}`);
  });

  test("is refused before the key is checked", async () => {
    expect((await statusOf("/v1/../api/keys", { key: "wrong" }))[0]).toBe(400);
    expect((await statusOf("/v1/models", { key: "wrong" }))[0]).toBe(401);
  });

  test("is allowed in a query", async () => {
    expect((await statusOf("/v1/models?path=../x"))[0]).toBe(200);
  });
});

describe("the path of PROXY_UPSTREAM_URL", () => {
  test("is prepended to the target", async () => {
    backend.clear();
    await statusOf("/v1/anything?x=1");
    expect((await backend.nextRequest()).target).toBe("/tenant/v1/anything?x=1");
  });
});

describe("a Host", () => {
  test.each([
    "gw",
    "a",
    "localhost",
    "evil.example:1",
    "[::1]",
    "127.0.0.1:1",
    "api",
    "my_host",
    "[fe80::1]:80",
    "x".repeat(255),
  ])("of %s has no effect", async (host) => {
    backend.clear();
    expect((await statusOf("/v1/anything", { host }))[0]).toBe(200);
    expect((await backend.nextRequest()).header("host")).toBe(new URL(backend.url).host);
  });

  test.each([
    "",
    "a b",
    "evil.example/../x",
    "h\\x",
    "user@",
    "a:b:c",
    "[::1",
    "%00",
    "a:",
    "a:65536",
    "a:123456",
    "a/b",
  ])("that is malformed (%p) is refused", async (host) => {
    backend.clear();
    const [status] = await statusOf("/v1/anything", { host });
    expect(status).toBe(400);
    expect(backend.requests()).toEqual([]);
  });

  test("that is missing is refused", async () => {
    const client = await connectRaw(gate.url);
    client.send(`GET /v1/anything HTTP/1.1\r\nAuthorization: Bearer ${gate.key}\r\n\r\n`);
    expect((await client.head()).status).toBe(400);
    client.close();
  });

  test("in an absolute target has no effect", async () => {
    backend.clear();
    expect((await statusOf("http://169.254.169.254/v1/anything"))[0]).toBe(200);
    expect((await backend.nextRequest()).header("host")).toBe(new URL(backend.url).host);
  });
});

describe("other paths", () => {
  test("/v1 without a slash is not found", async () => {
    const [status, body] = await statusOf("/v1");
    expect(status).toBe(404);
    expect(JSON.parse(body).error.code).toBe("not_found");
  });

  test.each(["/V1/models", "/v1models", "/%761/models"])("%s does not reach the backend", async (target) => {
    backend.clear();
    await statusOf(target);
    expect(backend.requests()).toEqual([]);
  });
});
