import { beforeEach, describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { errorOf, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";
import { startTollgate } from "../support/tollgate.ts";
import { shared } from "../support/shared.ts";

const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }));
beforeEach(() => backend.clear());

async function statusOf(
  method: string,
  target: string,
  headers: Record<string, string> = {},
): Promise<[number, string]> {
  const client = await gate.sendRaw(target, {}, { method, headers });
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

  test("a browser gets a page", async () => {
    const page = await fetch(`${gate.url}/models`, { headers: { accept: "text/html" } });
    expect(page.headers.get("content-type")).toStartWith("text/html");
  });
});

describe("a base URL with /v1 twice", () => {
  test.each([
    ["/v1/v1/anything?beta=true", "/v1/anything?beta=true"],
    ["//v1/v1/anything", "/v1/anything"],
    ["/v1//v1/v1/anything", "/v1/anything"],
    ["/v1/v1//a/", "/v1//a/"],
    ["/v1/v1/a?b=/v1/v1/c", "/v1/a?b=/v1/v1/c"],
    ["/v1/v1beta/v1/a", "/v1/v1beta/v1/a"],
    ["/v1/a/v1/b", "/v1/a/v1/b"],
    ["/v1/V1/a%23b", "/v1/V1/a%23b"],
    ["/v1/v10/a", "/v1/v10/a"],
  ])("is served with one: %s reaches the backend as %s", async (target, expected) => {
    const [status] = await statusOf("POST", target);
    expect([status, (await backend.nextRequest()).target]).toEqual([200, expected]);
  });

  test("is no path without anything below it", async () => {
    const [status, text] = await statusOf("POST", "/v1/v1");
    expect([status, JSON.parse(text).error.code, backend.requests()]).toEqual([404, "not_found", []]);
  });

  test.each<[rule: string, given: object, path: string, code: string]>([
    ["allowed_paths", { allowed_paths: ["/v1/chat/*"] }, "/v1/v1/models", "path_not_allowed"],
    ["allowed_models", { allowed_models: ["other"] }, "/v1/v1/models/sim", "model_not_allowed"],
    ["batches", { tokens_per_day: 1 }, "/v1/v1/batches", "path_not_allowed"],
    ["closed paths", {}, "/v1/v1/files", "not_found"],
    ["dots", {}, "/v1/v1/../models", "invalid_path"],
  ])("goes round no rule: %s", async (_, given, path, code) => {
    await using closed = await startTollgateWithKeys({ PROXY_CLOSED_PATHS: "/v1/files*" });
    const { key } = await closed.createKey(given);
    const client = await closed.sendRaw(path, undefined, { key });
    expect(JSON.parse(await (await client.head(), client.text())).error.code).toBe(code);
    client.close();
  });

  test("counts, is limited and logged as the path with one", async () => {
    await using counted = await startTollgateWithKeys();
    const { id, key } = await counted.createKey({ tokens_per_day: 1_000_000 });
    const body = { model: "m", input: "Hi", max_output_tokens: 5 };
    const refused = await counted.send("/v1/v1/responses", { ...body, n_predict: 9 }, { key });
    expect((await errorOf(refused)).code).toBe("member_not_allowed");
    const made = await counted.send("/v1/v1/responses", body, { key });
    const { id: response } = (await made.json()) as { id: string };
    expect((await counted.getKey(id)).total_output_tokens).toBeGreaterThan(0);
    expect((await counted.send(`/v1/v1/responses/${response}`)).status).toBe(404);
    await counted.waitForLog(({ path }) => path === `/v1/responses/${response}`);
    expect(counted.log.flatMap(({ path }) => (typeof path === "string" ? [path] : []))).toEqual([
      "/v1/responses",
      "/v1/responses",
      `/v1/responses/${response}`,
    ]);
  });
});

test("dots after a backslash are refused", async () => {
  const [status, text] = await statusOf("GET", "/v1\\..\\x");
  expect([status, JSON.parse(text).error.code]).toEqual([400, "invalid_path"]);
});
