import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { connectRaw } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

let backend: Simulator;
let gate: Tollgate;
beforeAll(async () => {
  backend = startSimulator();
  gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url });
});
beforeEach(() => backend.clear());
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  backend.stop();
});

async function statusOf(
  method: string,
  target: string,
  headers: Record<string, string> = {},
): Promise<[number, string]> {
  const client = await connectRaw(gate.url);
  client.request(method, target, { "x-api-key": gate.key, "content-type": "application/json", ...headers }, "{}");
  const { status } = await client.head();
  const text = await client.text();
  client.close();
  return [status, text];
}

describe("a base URL with a trailing slash", () => {
  test.each(["//v1/anything", "//v1/a/b/c?x=//v1/"])("reaches the backend below /v1: %s", async (target) => {
    const [status] = await statusOf("POST", target);
    expect([status, (await backend.nextRequest()).target]).toEqual([200, target.slice(1)]);
  });

  test.each(["//v1/../x", "//v1/a/%2e%2e/b", "//v1/..", "///v1/a/../b"])(
    "does not bypass the path guard: %s",
    async (target) => {
      const [status, text] = await statusOf("GET", target);
      expect([status, JSON.parse(text).error.code]).toEqual([400, "invalid_path"]);
      expect(backend.requests()).toEqual([]);
    },
  );
});

describe("a base URL without /v1", () => {
  test.each([
    ["POST", "/chat/completions"],
    ["POST", "/completions"],
    ["POST", "/messages?beta=true"],
    ["POST", "/messages/count_tokens"],
    ["POST", "/responses"],
    ["POST", "/embeddings"],
    ["POST", "/rerank"],
    ["POST", "/v2/rerank"],
    ["POST", "/tokenize"],
    ["POST", "/score"],
    ["POST", "/pooling"],
    ["POST", "/invocations"],
    ["POST", "/audio/transcriptions"],
    ["GET", "/models"],
  ])("%s %s gets a 404 that names the mistake", async (method, target) => {
    const [status, text] = await statusOf(method, target);
    expect(status).toBe(404);
    expect(JSON.parse(text)).toMatchObject({ type: "error", error: { type: "not_found_error", code: "not_found" } });
    expect(JSON.parse(text).error.message).toContain("must end in /v1");
    expect(backend.requests()).toEqual([]);
  });

  test.each(["/v1/v1/messages?beta=true", "//v1/v1/chat/completions", "/v1//v1/models", "/v1/v1"])(
    "POST %s, with two, gets one too",
    async (target) => {
      const [status, text] = await statusOf("POST", target);
      expect([status, JSON.parse(text).error.code]).toEqual([404, "not_found"]);
      expect(JSON.parse(text).error.message).toContain("must end without /v1");
      expect(backend.requests()).toEqual([]);
    },
  );

  test("a browser gets a page", async () => {
    const page = await fetch(`${gate.url}/models`, { headers: { accept: "text/html" } });
    expect(page.headers.get("content-type")).toStartWith("text/html");
  });
});

test("dots after a backslash are refused", async () => {
  const [status, text] = await statusOf("GET", "/v1\\..\\x");
  expect([status, JSON.parse(text).error.code]).toEqual([400, "invalid_path"]);
});
