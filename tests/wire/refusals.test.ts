import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));

const get = (headers: Record<string, string>, init: RequestInit = {}): Promise<Response> =>
  fetch(`${gate.url}/v1/models`, { headers, ...init });

describe("a key", () => {
  test("is accepted as a bearer token, in any case of the scheme, and as x-api-key", async () => {
    for (const scheme of ["Bearer", "bearer", "BEARER"]) {
      expect((await get({ authorization: `${scheme} ${gate.key}` })).status).toBe(200);
    }
    expect((await get({ "x-api-key": gate.key })).status).toBe(200);
  });

  test("is taken from the bearer token if both are sent", async () => {
    expect((await get({ authorization: `Bearer ${gate.key}`, "x-api-key": "wrong" })).status).toBe(200);
    expect((await get({ authorization: "Bearer wrong", "x-api-key": gate.key })).status).toBe(401);
  });

  const none = "The request has no API key; send one as Authorization: Bearer KEY, or as x-api-key: KEY.";
  const invalid = "Invalid API key.";

  test.each<[string, Record<string, string>, string]>([
    ["missing", {}, none],
    ["unknown", { authorization: "Bearer wrong" }, invalid],
    ["empty", { authorization: "Bearer " }, none],
    ["of another scheme", { authorization: "Basic dTpw" }, none],
    ["without a scheme", { authorization: "wrong" }, none],
    ["in a header that other services read", { "api-key": "wrong" }, none],
    ["an empty x-api-key", { "x-api-key": "" }, none],
    ["SQL", { "x-api-key": "' OR 1=1 --" }, invalid],
    ["a wildcard", { "x-api-key": "%" }, invalid],
    ["wildcards of the right length", { "x-api-key": "_".repeat(32) }, invalid],
    ["very long", { "x-api-key": "k".repeat(10_000) }, invalid],
  ])("that is %s is refused, and its sender told why", async (_, headers, message) => {
    backend.clear();
    const response = await get(headers);
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toEqual({
      type: "error",
      error: { type: "authentication_error", message, param: null, code: "invalid_api_key" },
    });
    expect(backend.requests()).toEqual([]);
  });

  test("that was disabled is refused at the next request, with the response for an unknown key", async () => {
    const { id, key } = await gate.admin.createKey("to be disabled");
    expect((await get({ "x-api-key": key })).status).toBe(200);
    for (const similar of [key.toUpperCase(), `${key.slice(0, 31)}_`, `${key.slice(0, 8)}%`, `${key}%00`])
      if (similar !== key) expect((await get({ "x-api-key": similar })).status).toBe(401);
    await gate.admin.updateKey(id, { is_active: false });
    const refused = await get({ "x-api-key": key });
    const unknown = await get({ "x-api-key": "unknown" });
    expect(refused.status).toBe(401);
    expect(await refused.text()).toBe(await unknown.text());
    await gate.admin.updateKey(id, { is_active: true });
    expect((await get({ "x-api-key": key })).status).toBe(200);
    await gate.admin.deleteKey(id);
    expect((await get({ "x-api-key": key })).status).toBe(401);
  });

  test("that is wrong leaves the body unread", async () => {
    const client = await connectRaw(gate.url);
    client.send("POST /v1/files HTTP/1.1\r\nHost: h\r\nx-api-key: wrong\r\nContent-Length: 1000000\r\n\r\n");
    expect((await client.head()).status).toBe(401);
    client.close();
  });
});

describe("a method", () => {
  test.each(["PROPFIND", "TRACE", "MKCOL", "REPORT"])("that the API does not use is refused: %s", async (method) => {
    backend.clear();
    const client = await gate.sendRaw("/v1/models", undefined, { method });
    const head = await client.head();
    expect(head.status).toBe(405);
    expect(head.header("allow")).toBe("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    expect(backend.requests()).toEqual([]);
    client.close();
  });
});

describe("an upgrade", () => {
  const upgrade = {
    Connection: "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
  };

  test("to WebSocket is refused immediately, so that the client falls back to HTTP", async () => {
    backend.clear();
    const headers = { Upgrade: "websocket", ...upgrade };
    const client = await gate.sendRaw("/v1/responses", undefined, { headers });
    const head = await client.head();
    expect([head.status, head.header("upgrade")]).toEqual([426, "HTTP/1.1"]);
    expect((await client.json()) as object).toMatchObject({ error: { code: "upgrade_not_supported" } });
    expect(backend.requests()).toEqual([]);
    client.close();
  });

  test("to HTTP/2 is ignored, as HTTP allows", async () => {
    const headers = { Connection: "Upgrade", Upgrade: "h2c" };
    const client = await gate.sendRaw("/v1/models", undefined, { headers });
    expect((await client.head()).status).toBe(200);
    client.close();
  });
});
