import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import type { ListedKey } from "../support/admin-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw, type RawClient } from "../support/raw-client.ts";
import { startTollgate, type Tollgate } from "../support/tollgate.ts";

let backend: Simulator;
let gate: Tollgate;
beforeAll(async () => {
  backend = startSimulator();
  gate = await startTollgate({ PROXY_UPSTREAM_URL: backend.url, METRICS_TOKEN: "scraper" });
});
beforeEach(() => backend.clear());
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
  backend.stop();
});

interface LimitedKey extends ListedKey {
  refused_today: number;
}

let names = 0;
const createKey = (fields: object, of = gate): Promise<LimitedKey> => {
  names += 1;
  return of.admin.expectOk<LimitedKey>("POST", "/api/keys", { name: `limited ${names}`, ...fields });
};
const readKey = async (id: number, of = gate): Promise<LimitedKey> => {
  const keys = (await of.admin.listKeys()) as LimitedKey[];
  const found = keys.find((key) => key.id === id);
  if (found === undefined) throw new Error("The key no longer exists");
  return found;
};

const chat = { model: "m", max_tokens: 8, messages: [{ role: "user", content: "Hi" }] };

function post(
  key: string,
  { body = chat, script = "" }: { body?: object; script?: string } = {},
  to = gate,
): Promise<Response> {
  const headers = { "x-api-key": key, "content-type": "application/json", "x-simulate": script };
  return fetch(`${to.url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(body) });
}

async function postRaw(key: string, script: string, body: object, to = gate): Promise<RawClient> {
  const client = await connectRaw(to.url);
  const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": script };
  client.request("POST", "/v1/chat/completions", headers, JSON.stringify(body));
  return client;
}

const errorOf = async (response: Response): Promise<Record<string, unknown>> => ({
  status: response.status,
  ...((await response.json()) as { error: Record<string, unknown> }).error,
});

describe("a limit of requests per minute", () => {
  test("answers the one too many with a 429 of both SDK families, and says what is left on every response", async () => {
    const { id, key } = await createKey({ requests_per_minute: 2 });
    const first = await post(key);
    const limitHeaders = [...first.headers].filter(([name]) => name.startsWith("x-ratelimit"));
    expect<Record<string, string>>(Object.fromEntries(limitHeaders)).toEqual({
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": "1",
      "x-ratelimit-reset-requests": "1m1s",
    });
    const failed = await post(key, { script: "reset-before-head" });
    expect([failed.status, failed.headers.get("x-ratelimit-remaining-requests")]).toEqual([502, "0"]);
    const refused = await post(key);
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeWithin(55, 62);
    expect(refused.headers.get("x-should-retry")).toBeNull();
    expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(await errorOf(refused)).toEqual({
      status: 429,
      type: "rate_limit_error",
      message: `This API key is limited to 2 requests per minute; try again in ${seconds} seconds.`,
      param: null,
      code: "requests_per_minute",
    });
    expect(await readKey(id)).toMatchObject({
      total_request_count: 1,
      used: { requests_per_minute: 2, max_concurrency: null },
      refused_today: 1,
    });
    const entry = await gate.waitForLog(({ keyId, code }) => keyId === id && code === "requests_per_minute");
    expect(entry).toMatchObject({ status: 429, outcome: "refused" });
    const headers = { authorization: "Bearer scraper" };
    const metrics = await (await fetch(`${gate.adminUrl}/metrics`, { headers })).text();
    expect(metrics).toMatch(/^tollgate_limit_refusals_total\{limit="requests_per_minute"\} 1$/m);
  });

  test("refuses before the body is read", async () => {
    const { key } = await createKey({ requests_per_minute: 1 });
    await post(key);
    const client = await connectRaw(gate.url);
    client.send(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
    );
    expect((await client.head()).status).toBe(429);
    client.close();
  });

  test("holds exactly for requests at once", async () => {
    const { key } = await createKey({ requests_per_minute: 13 });
    const responses = await Promise.all(Array.from({ length: 60 }, () => post(key)));
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(13);
  });
});

describe("a limit of tokens", () => {
  test("of a day is not worth a retry, and names the time at which it resets", async () => {
    const { id, key } = await createKey({ tokens_per_day: 50 });
    const first = await post(key, { script: "usage=30,30" });
    expect(first.headers.get("x-ratelimit-limit-tokens")).toBe("50");
    expect(await readKey(id)).toMatchObject({ used: { tokens_per_day: 60 } });
    const refused = await post(key);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(Number(refused.headers.get("retry-after"))).toBeWithin(1, 86_401);
    expect(await errorOf(refused)).toMatchObject({
      code: "tokens_per_day",
      message: expect.stringMatching(/limited to 50 tokens per day; the limit resets at .*T00:00:00.000\+09:00\.$/),
    });
  });

  test("reserves the estimated input and the capped max_tokens while a request runs", async () => {
    const { id, key } = await createKey({ tokens_per_minute: 1_000_000 });
    const body = { ...chat, max_tokens: 99_999_999, stream: true };
    const client = await postRaw(key, "gap=forever@1; usage=5,6", body);
    await client.nextEvent();
    const estimate = Math.floor(JSON.stringify(body).length / 3);
    expect((await readKey(id)).used["tokens_per_minute"]).toBe(16_384 + estimate);
    client.reset();
    await pollUntil(async () => (await readKey(id)).used["tokens_per_minute"] === 0);
  });

  test("does not refuse what generates nothing", async () => {
    const { key } = await createKey({ tokens_per_month: 1 });
    await post(key, { script: "usage=30,30" });
    expect((await post(key)).status).toBe(429);
    expect((await fetch(`${gate.url}/v1/models`, { headers: { "x-api-key": key } })).status).toBe(200);
  });
});

describe("a place of a limit of concurrent requests is given back", () => {
  const stream = { ...chat, stream: true };
  const endings: Record<string, (key: string) => Promise<unknown>> = {
    "after a whole response": async (key) => (await post(key)).text(),
    "after a stream": async (key) => (await post(key, { body: stream })).text(),
    "after a HEAD": (key) => fetch(`${gate.url}/v1/models`, { method: "HEAD", headers: { "x-api-key": key } }),
    "after a response without a body": (key) => post(key, { script: "204" }),
    "after an error of the backend": async (key) => (await post(key, { script: "status=500" })).text(),
    "after a reset before the head": async (key) => (await post(key, { script: "reset-before-head" })).text(),
    "after garbage": async (key) => (await post(key, { script: "garbage" })).text(),
    "after a whole response that breaks off": async (key) =>
      (await post(key, { script: "wrong-length=100; body=1000; gap=30ms@1" })).text(),
    "after a stream that breaks off": async (key) => (await postRaw(key, "die@2", stream)).ended(),
    "after the client left before the head": async (key) => {
      const client = await postRaw(key, "slow-head=forever", stream);
      await backend.nextRequest();
      client.reset();
    },
    "after the client left a stream": async (key) => {
      const client = await postRaw(key, "gap=forever@2", stream);
      await client.nextEvent();
      client.close();
    },
    "after the client left while it sent its body": async (key) => {
      const client = await connectRaw(gate.url);
      client.send(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
      );
      await pollUntil(() => gate.log.some(({ message }) => message === "Listening"));
      client.reset();
    },
    "after a body that is refused": async (key) =>
      (await post(key, { body: Object.fromEntries([["model", "m"]]), script: "status=400" })).text(),
    "after a body that is too large": async (key) => {
      const headers = { "x-api-key": key, "content-type": "application/json", "content-length": "999999999" };
      const client = await connectRaw(gate.url);
      client.request("POST", "/v1/chat/completions", headers);
      client.close();
    },
    "after a stream without usage": async (key) => (await post(key, { body: stream, script: "no-usage" })).text(),
    "after a stream without its terminal event": async (key) =>
      (await post(key, { body: stream, script: "no-done" })).text(),
  };

  test.each(Object.entries(endings))("%s", async (_, end) => {
    const { id, key } = await createKey({ max_concurrency: 1, tokens_per_day: 1_000_000 });
    await end(key);
    await expectFree(id);
    expect((await post(key)).status).toBe(200);
  });

  const timeouts: Record<string, (key: string, to: Tollgate) => Promise<unknown>> = {
    "after a read timeout before the head": async (key, to) =>
      (await post(key, { script: "slow-head=forever" }, to)).text(),
    "after a read timeout within a stream": async (key, to) =>
      (await postRaw(key, "gap=forever@2", stream, to)).ended(),
  };

  test.each(Object.entries(timeouts))("%s", async (_, end) => {
    await using impatient = await startTollgate({
      PROXY_UPSTREAM_URL: backend.url,
      PROXY_STREAM_READ_TIMEOUT: "0.5",
      PROXY_NONSTREAM_READ_TIMEOUT: "0.5",
    });
    const { id, key } = await createKey({ max_concurrency: 1, tokens_per_day: 1_000_000 }, impatient);
    await end(key, impatient);
    await expectFree(id, impatient);
  });

  async function expectFree(id: number, of = gate): Promise<void> {
    await pollUntil(async () => (await readKey(id, of)).used["max_concurrency"] === 0);
    // Nothing is reserved either.
    const [totals, { used }] = [await readKey(id, of), await readKey(id, of)];
    expect(used["tokens_per_day"]).toBe(
      (totals as unknown as { total_input_tokens: number }).total_input_tokens +
        (totals as unknown as { total_output_tokens: number }).total_output_tokens,
    );
  }

  test("and a second request is refused until then", async () => {
    const { key } = await createKey({ max_concurrency: 1 });
    const client = await postRaw(key, "gap=forever@1", stream);
    await client.nextEvent();
    const refused = await post(key);
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(await errorOf(refused)).toMatchObject({
      status: 429,
      code: "max_concurrency",
      message: "This API key is limited to 1 concurrent requests; try again in 1 second.",
    });
    client.reset();
    await pollUntil(async () => (await post(key)).status === 200);
  });

  test("before the client sees the end, so that it can go on at once", async () => {
    const { key } = await createKey({ max_concurrency: 1 });
    for (let n = 0; n < 20; n++) {
      const response = await post(key, { body: n % 2 === 0 ? stream : chat });
      expect(response.status).toBe(200);
      await response.text();
    }
  });
});

describe("end_running", () => {
  const stream = { ...chat, stream: true };

  test.each<[string, (id: number) => Promise<unknown>]>([
    ["switching a key off", (id) => gate.admin.updateKey(id, { is_active: false, end_running: true })],
    ["deleting it", (id) => gate.admin.expectOk("DELETE", `/api/keys/${id}?end_running=true`)],
    [
      "an expiry that has come",
      (id) => gate.admin.updateKey(id, { expires_at: new Date(Date.now() - 1).toISOString(), end_running: true }),
    ],
    [
      "an expiry that comes",
      (id) => gate.admin.updateKey(id, { expires_at: new Date(Date.now() + 300).toISOString(), end_running: true }),
    ],
  ])("ends running responses with %s soon, and counts what was seen", async (_, end) => {
    const { id, key } = await createKey({});
    const body = { ...stream, stream_options: { include_usage: true, continuous_usage_stats: true } };
    const client = await postRaw(key, "gap=forever@3", body);
    await client.nextEvent();
    const other = await postRaw(gate.key, "gap=450ms@1; gap=450ms@2; gap=450ms@3; gap=450ms@4", stream);
    await end(id);
    expect(await client.ended()).not.toBe("complete");
    expect(await client.text()).toContain('"code":"key_revoked"');
    expect(await gate.waitForLog(({ keyId, code }) => keyId === id && code === "key_revoked")).toMatchObject({
      outcome: "revoked",
    });
    expect(await other.text()).toContain("[DONE]");
  });

  test("is not asked for, so responses finish", async () => {
    const { id, key } = await createKey({});
    const client = await postRaw(key, "gap=300ms@1; gap=300ms@2; gap=300ms@3", stream);
    await client.nextEvent();
    await gate.admin.updateKey(id, { is_active: false });
    expect(await client.text()).toContain("[DONE]");
  });

  test("with an expiry is taken back with the expiry", async () => {
    const { id, key } = await createKey({});
    await gate.admin.updateKey(id, { expires_at: new Date(Date.now() + 3000).toISOString(), end_running: true });
    await gate.admin.updateKey(id, { expires_at: null });
    const client = await postRaw(key, "gap=4s@1", stream);
    expect(await client.text()).toContain("[DONE]");
  });

  test.each([
    [{ is_active: false, end_running: 1 }, "end_running must be a boolean"],
    [{ is_active: true, end_running: true }, "end_running requires is_active false or expires_at"],
    [{ expires_at: null, end_running: true }, "end_running requires is_active false or expires_at"],
    [{ end_running: true }, "No fields to update"],
  ])("refuses %j", async (fields, error) => {
    const { id } = await createKey({});
    const response = await gate.admin.request("PATCH", `/api/keys/${id}`, fields);
    expect([response.status, await response.json()]).toEqual([400, { error }]);
  });
});

describe("the rules of a key", () => {
  test("refuse models that are not allowed, by the name asked for and the name sent", async () => {
    const { key } = await createKey({ allowed_models: ["sim*"] });
    expect((await post(key, { body: { ...chat, model: "SIM-large" } })).status).toBe(200);
    const refused = await post(key, { body: { ...chat, model: "other" } });
    expect(await errorOf(refused)).toMatchObject({ status: 403, type: "permission_error", code: "model_not_allowed" });
    for (const body of [{ input: "x" }, { model: 7 }]) expect((await post(key, { body })).status).toBe(403);
    const twice = await fetch(`${gate.url}/v1/x`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json" },
      body: '{"model":"other","model":"sim"}',
    });
    expect(twice.status).toBe(403);
    const form = new FormData();
    form.set("model", "other");
    const upload = await fetch(`${gate.url}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { "x-api-key": key },
      body: form,
    });
    expect(upload.status).toBe(403);
  });

  test("list only the models that are allowed", async () => {
    const ids = async (key: string, path = "/v1/models") => {
      const response = await fetch(gate.url + path, { headers: { "x-api-key": key } });
      return ((await response.json()) as { data: { id: string }[] }).data.map(({ id }) => id);
    };
    const all = await ids(gate.key);
    const [first = ""] = all;
    const { key } = await createKey({ allowed_models: [first.toUpperCase()] });
    for (const path of ["/v1/models", "//v1/models?x=1"]) expect(await ids(key, path)).toEqual([first]);
    const { key: other } = await createKey({ allowed_models: ["other"] });
    expect(await ids(other)).toEqual([]);
    const one = await fetch(`${gate.url}/v1/models/${first}`, { headers: { "x-api-key": other } });
    expect(one.status).toBe(403);
  });

  test("refuse a key that is only for GPU samples", async () => {
    const { key } = await createKey({ scope: "gpu" });
    expect(await errorOf(await post(key))).toMatchObject({ status: 403, code: "scope_not_allowed" });
  });

  test("end with the key's expiry", async () => {
    const { key, id } = await createKey({ expires_at: "2100-01-01T00:00:00Z" });
    expect((await post(key)).status).toBe(200);
    await gate.admin.updateKey(id, { expires_at: new Date(Date.now() - 1).toISOString() });
    expect((await post(key)).status).toBe(401);
  });

  test("say nothing on the responses of a key without limits", async () => {
    const response = await post(gate.key);
    expect([...response.headers.keys()].filter((name) => name.startsWith("x-ratelimit"))).toEqual([]);
  });
});
