import { describe, expect, test } from "bun:test";
import { startSimulator } from "../support/simulator/simulator.ts";
import { shared } from "../support/shared.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

const time = { now: Date.parse("2026-05-15T12:00:00+09:00") };
const backend = shared(() => startSimulator());
const gate = shared(() => startTollgate({ PROXY_UPSTREAM_URL: backend.url }, { clock: () => time.now }));

const describeKey = (key: string, path = "/v1/tollgate/key", method = "GET"): Promise<Response> =>
  fetch(gate.url + path, { method, headers: { authorization: `Bearer ${key}` } });

const complete = async (key: string): Promise<unknown> =>
  (await gate.send("/v1/chat/completions", { model: "m", messages: [] }, { key, script: "usage=5,7" })).text();

test("GET /v1/tollgate/key tells the holder of a key its limits and usage, and nothing else", async () => {
  const { key, id } = await gate.admin.createKey("mine", {
    note: "confidential",
    owner: "Kim",
    tokens_per_day: 1000,
    requests_per_minute: 10,
    expires_at: "2026-06-01T00:00:00+09:00",
  });
  await complete(key);
  time.now += 24 * 3_600_000;
  await complete(key);
  await complete(gate.key);
  const response = await describeKey(key);
  expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
  expect([...response.headers].filter(([name]) => name.startsWith("x-ratelimit-"))).toEqual([
    ["x-ratelimit-limit-requests", "10"],
    ["x-ratelimit-limit-tokens", "1000"],
    ["x-ratelimit-remaining-requests", "9"],
    ["x-ratelimit-remaining-tokens", "988"],
    ["x-ratelimit-reset-requests", "1m1s"],
    ["x-ratelimit-reset-tokens", "12h0m0s"],
  ]);
  const text = await response.text();
  const limits = { max_concurrency: null, tokens_per_minute: null, tokens_per_week: null, tokens_per_month: null };
  expect(JSON.parse(text)).toEqual({
    id,
    name: "mine",
    now: "2026-05-16T12:00:00.000+09:00",
    expires_at: "2026-06-01T00:00:00.000+09:00",
    scope: "all",
    allowed_models: null,
    allowed_paths: null,
    ...limits,
    priority: null,
    limits_extra: null,
    requests_per_minute: 10,
    tokens_per_day: 1000,
    used: { ...limits, requests_per_minute: 1, tokens_per_day: 12 },
    limit_states: {
      requests_per_minute: {
        limit: 10,
        used: 1,
        reserved: 0,
        estimated: null,
        left: 9,
        resets_at: "2026-05-16T12:01:01.000+09:00",
      },
      tokens_per_day: {
        limit: 1000,
        used: 12,
        reserved: 0,
        estimated: 0,
        left: 988,
        resets_at: "2026-05-17T00:00:00.000+09:00",
      },
    },
    resets: {
      requests_per_minute: "2026-05-16T12:01:01.000+09:00",
      tokens_per_minute: null,
      tokens_per_day: "2026-05-17T00:00:00.000+09:00",
      tokens_per_week: null,
      tokens_per_month: null,
    },
    refused_today: 0,
    team: null,
    today: { request_count: 1, input_tokens: 5, output_tokens: 7, total_tokens: 12, estimated_tokens: 0 },
    this_month: { request_count: 2, input_tokens: 10, output_tokens: 14, total_tokens: 24, estimated_tokens: 0 },
    daily: [
      { date: "2026-05-15", request_count: 1, input_tokens: 5, output_tokens: 7 },
      { date: "2026-05-16", request_count: 1, input_tokens: 5, output_tokens: 7 },
    ],
  });
  expect(text).not.toContain("confidential");
  expect(text).not.toContain(key);
});

test("GET /v1/tollgate/key is never forwarded, and needs a key", async () => {
  backend.clear();
  expect((await describeKey("unknown")).status).toBe(401);
  expect((await describeKey(gate.key, "/v1/tollgate/other")).status).toBe(404);
  const refused = await describeKey(gate.key, "/v1/tollgate/key", "DELETE");
  expect([refused.status, refused.headers.get("allow")]).toEqual([405, "GET, HEAD"]);
  expect((await describeKey(gate.key, "/v1/tollgate/key", "HEAD")).status).toBe(200);
  expect(backend.requests()).toEqual([]);
  expect((await gate.readKey()).total_request_count).toBe(1);
});

test("GET /api/own-key responds with the same on the admin port, and only to a key for inference", async () => {
  const separate = { PROXY_UPSTREAM_URL: backend.url, ADMIN_PORT: "0" };
  await using other = await startTollgate(separate, { clock: () => time.now });
  const { key } = await other.admin.createKey("mine", { tokens_per_day: 9 });
  const gpu = await other.admin.createKey("agent", { scope: "gpu" });
  const read = (credential: string): Promise<Response> =>
    fetch(`${other.adminUrl}/api/own-key`, { headers: { "x-api-key": credential } });
  const atProxy = await other.send("/v1/tollgate/key", undefined, { key });
  expect(await (await read(key)).json()).toEqual(await atProxy.json());
  expect((await read("unknown")).status).toBe(401);
  const refused = await read(gpu.key);
  expect([refused.status, await refused.json()]).toEqual([403, { error: "This API key may only post GPU samples" }]);
});

describe("opencode auth login", () => {
  const publicUrl = "https://gate.example.com";
  const wellKnown = "/.well-known/opencode";
  const withKey = (server: Tollgate, key = server.key) =>
    fetch(`${server.url}/v1/tollgate/opencode`, { headers: { authorization: `Bearer ${key}` } });

  test.each([{}, { ADMIN_PORT: "0" }])("finds its configuration with %j, and no model in it", async (settings) => {
    const environment = { PROXY_UPSTREAM_URL: backend.url, PUBLIC_URL: publicUrl, PROXY_ALIAS_MODEL: "secret" };
    await using offering = await startTollgate({ ...environment, ...settings });
    const response = await fetch(offering.url + wellKnown, { headers: { host: "elsewhere.example" } });
    const text = await response.text();
    expect(response.status).toBe(200);
    expect(text).not.toContain("secret");
    expect(text).not.toContain("elsewhere");
    expect(JSON.parse(text)).toMatchObject({
      auth: { command: ["sh", "-c", expect.stringContaining("read -r key </dev/tty")], env: "TOLLGATE_API_KEY" },
      config: { provider: { tollgate: { options: { baseURL: `${publicUrl}/v1`, apiKey: "{env:TOLLGATE_API_KEY}" } } } },
      remote_config: { url: `${publicUrl}/v1/tollgate/opencode` },
    });
  });

  test("gets the models that its key may use, with their contexts", async () => {
    await using offering = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PUBLIC_URL: publicUrl,
      PROXY_ALIAS_MODEL: "local",
      MAX_CONTEXT_TOKENS: "131072",
    });
    const modelsOf = async (key?: string) => (await withKey(offering, key)).json();
    const limit = { context: 131_072, output: 16_384 };
    expect(await modelsOf()).toEqual({ provider: { tollgate: { models: { local: { name: "local", limit } } } } });
    const { key } = await offering.admin.expectOk<{ key: string }>("POST", "/api/keys", {
      name: "other",
      allowed_models: ["other"],
    });
    expect(await modelsOf(key)).toEqual({ provider: { tollgate: { models: {} } } });
    expect((await withKey(offering, "none")).status).toBe(401);
  });

  test("is not offered where PUBLIC_URL is not set", async () => {
    const response = await fetch(gate.url + wellKnown);
    expect(response.headers.get("content-type")).not.toContain("json");
  });
});
