import { describe, expect, test } from "bun:test";
import { shared } from "../support/shared.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const page = "https://chat.example.com";
const backend = shared(() => startSimulator());
const startFor = (origins?: string) =>
  shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url, PROXY_CORS_ORIGINS: origins }));
const [listed, open, off] = [startFor(`${page}, http://localhost:3000`), startFor("*"), startFor()];

const preflight = (gate: Tollgate, origin: string): Promise<Response> =>
  fetch(`${gate.url}/v1/chat/completions`, {
    method: "OPTIONS",
    headers: {
      origin,
      "access-control-request-method": "POST",
      "access-control-request-headers": "authorization, content-type, x-stainless-os",
    },
  });

describe("a preflight", () => {
  test("gets a response without a key and with the requested headers, and never reaches the backend", async () => {
    backend.clear();
    for (const [gate, allowed] of [
      [listed, page],
      [open, "*"],
    ] as const) {
      const response = await preflight(gate, page);
      expect(response.status).toBe(204);
      expect(response.headers.get("access-control-allow-origin")).toBe(allowed);
      expect(response.headers.get("access-control-allow-methods")).toContain("POST");
      expect(response.headers.get("access-control-allow-headers")).toBe("authorization, content-type, x-stainless-os");
    }
    expect(backend.requests()).toEqual([]);
  });

  test("may be cached for two hours, by origin and requested headers", async () => {
    const response = await preflight(listed, page);
    expect(response.headers.get("access-control-max-age")).toBe("7200");
    expect(response.headers.get("vary")).toBe("Origin, Access-Control-Request-Headers");
  });

  test.each([
    ["no method", { origin: page }],
    ["no origin", { "access-control-request-method": "POST" }],
  ])("that names %s is an ordinary request and needs a key", async (_, headers) => {
    backend.clear();
    const options = (key: Record<string, string>): Promise<Response> =>
      fetch(`${listed.url}/v1/anything`, { method: "OPTIONS", headers: { ...headers, ...key } });
    expect((await options({})).status).toBe(401);
    expect((await options({ "x-api-key": listed.key })).status).toBe(200);
    expect((await backend.nextRequest()).method).toBe("OPTIONS");
  });

  test("from an unlisted origin allows nothing", async () => {
    const response = await preflight(listed, "https://evil.example");
    expect([...response.headers.keys()].filter((name) => name.startsWith("access-control-allow"))).toEqual([]);
  });

  test("is an ordinary request if no origins are set", async () => {
    expect((await preflight(off, page)).status).toBe(401);
  });
});

describe("a response to a listed origin", () => {
  const get = (gate: Tollgate, path: string, headers: Record<string, string> = {}): Promise<Response> =>
    gate.send(path, undefined, { headers: { origin: page, ...headers } });

  test.each<[string, string, Record<string, string>]>([
    ["whole", "/v1/models", {}],
    ["as Tollgate's own error", "/v1/models", { "x-api-key": "wrong" }],
    ["as the backend's error", "/v1/anything", { "x-simulate": "status=500" }],
    ["after the backend failed", "/v1/anything", { "x-simulate": "reset-before-head" }],
    ["with the backend's own header", "/v1/anything", { "x-simulate": "header=Access-Control-Allow-Origin: *" }],
  ])("%s carries the origin once", async (_, path, headers) => {
    const response = await get(listed, path, headers);
    expect(response.headers.get("access-control-allow-origin")).toBe(page);
    expect(response.headers.get("vary")).toContain("Origin");
  });

  test("carries the origin if it is streamed", async () => {
    const body = { model: "m", stream: true, max_tokens: 2, messages: [{ role: "user", content: "Hi" }] };
    const response = await listed.send("/v1/chat/completions", body, { headers: { origin: page } });
    expect(response.headers.get("access-control-allow-origin")).toBe(page);
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
  });

  test("carries the origin if the path is refused", async () => {
    const response = await get(listed, "/v1/a..b");
    expect(response.status).toBe(400);
    expect(response.headers.get("access-control-allow-origin")).toBe(page);
  });

  test("carries no origin if the page is not listed", async () => {
    const response = await get(listed, "/v1/models", { origin: "https://evil.example" });
    expect(response.headers.has("access-control-allow-origin")).toBe(false);
  });

  test.each([page, "https://evil.example"])("to %s has none of the backend's CORS headers", async (origin) => {
    const backends = "header=Access-Control-Allow-Origin: *; header=Access-Control-Allow-Credentials: true";
    const response = await get(listed, "/v1/anything", { origin, "x-simulate": backends });
    expect(response.headers.has("access-control-allow-credentials")).toBe(false);
    expect(response.headers.get("access-control-allow-origin")).toBe(origin === page ? page : null);
  });

  test("exposes all headers to the page", async () => {
    expect((await get(listed, "/v1/models")).headers.get("access-control-expose-headers")).toBe("*");
  });

  test("does not vary by origin if all origins are allowed, so that caches keep one copy", async () => {
    expect((await get(open, "/v1/models")).headers.has("vary")).toBe(false);
  });

  test("keeps the backend's CORS headers if no origins are set", async () => {
    const response = await get(off, "/v1/anything", {
      "x-simulate": "header=Access-Control-Allow-Origin: https://b.example",
    });
    expect(response.headers.get("access-control-allow-origin")).toBe("https://b.example");
  });
});
