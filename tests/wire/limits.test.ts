import { describe, expect, test } from "bun:test";
import { pollUntil } from "../support/poll-until.ts";
import { connectRaw } from "../support/raw-client.ts";
import { chat, errorOf, startTollgateWithKeys } from "../support/tollgate-with-keys.ts";
import { shared } from "../support/shared.ts";

const gate = shared(() => startTollgateWithKeys({ METRICS_TOKEN: "scraper", CONTACT: "Ask ops." }));

describe("a limit of requests per minute", () => {
  test("is told by one speaker: the backend's headers of the same families stay behind", async () => {
    const { key } = await gate.createKey({ requests_per_minute: 5 });
    const names = [
      "x-ratelimit-limit-requests",
      "x-ratelimit-limit-tokens",
      "anthropic-ratelimit-tokens-limit",
      "x-codex-primary-used-percent",
    ];
    const script = ["status=429", ...[...names, "retry-after"].map((name) => `header=${name}: 77`)].join("; ");
    const seen = async (by: string) => {
      const { headers } = await gate.post(by, { script });
      return [...names, "retry-after"].map((name) => headers.get(name));
    };
    expect(await seen(key)).toEqual(["5", null, null, null, "77"]);
    expect(await seen(gate.key)).toEqual(["77", "77", "77", "77", "77"]);
  });

  test("answers the one too many with a 429 of both SDK families, and says what is left on every response", async () => {
    const { id, key } = await gate.createKey({ requests_per_minute: 2 });
    const first = await gate.post(key);
    const limitHeaders = [...first.headers].filter(([name]) => name.startsWith("x-ratelimit"));
    expect<Record<string, string>>(Object.fromEntries(limitHeaders)).toEqual({
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": "1",
      "x-ratelimit-reset-requests": "1m1s",
    });
    const failed = await gate.post(key, { script: "reset-before-head" });
    expect([failed.status, failed.headers.get("x-ratelimit-remaining-requests")]).toEqual([502, "0"]);
    const refused = await gate.post(key);
    const seconds = Number(refused.headers.get("retry-after"));
    expect(seconds).toBeWithin(55, 61);
    expect(refused.headers.get("x-should-retry")).toBeNull();
    expect(refused.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(await errorOf(refused)).toEqual({
      status: 429,
      type: "rate_limit_error",
      message: `This API key is limited to 2 requests per minute; try again in ${seconds} seconds. Ask ops.`,
      param: null,
      code: "requests_per_minute",
    });
    await pollUntil(async () => (await gate.getKey(id)).refused_today === 1);
    expect(await gate.getKey(id)).toMatchObject({
      total_request_count: 1,
      used: { requests_per_minute: 2, max_concurrency: null },
    });
    const entry = await gate.waitForLog(({ keyId, code }) => keyId === id && code === "requests_per_minute");
    expect(entry).toMatchObject({ status: 429, outcome: "limited" });
    const headers = { authorization: "Bearer scraper" };
    const metrics = await (await fetch(`${gate.adminUrl}/metrics`, { headers })).text();
    expect(metrics).toMatch(/^tollgate_limit_refusals_total\{limit="requests_per_minute"\} 1$/m);
  });

  test("counts a request once its body is read", async () => {
    const { id, key } = await gate.createKey({ requests_per_minute: 1 });
    const client = await connectRaw(gate.url);
    client.send(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nx-api-key: ${key}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
    );
    expect((await gate.post(key)).status).toBe(200);
    client.close();
    await gate.waitForLog(({ outcome }) => outcome === "client_left");
    expect(await gate.getKey(id)).toMatchObject({ used: { requests_per_minute: 1 }, refused_today: 0 });
  });

  test("does not count a request that the queue refuses", async () => {
    await using full = await startTollgateWithKeys({ PROXY_MAX_CONCURRENCY: "1", PROXY_QUEUE_SIZE: "0" });
    const { id, key } = await full.createKey({ requests_per_minute: 2, tokens_per_day: 1_000_000 });
    const running = await full.postRaw(key, "gap=forever@1", { ...chat, stream: true });
    await running.nextEvent();
    for (let n = 0; n < 3; n++) expect(await errorOf(await full.post(key))).toMatchObject({ code: "queue_full" });
    await pollUntil(async () => (await full.getKey(id)).used["requests_per_minute"] === 1);
    running.close();
    await pollUntil(async () => (await full.post(key)).status === 200);
    expect(await full.getKey(id)).toMatchObject({ used: { requests_per_minute: 2 }, refused_today: 0 });
  });

  test.each([{}, { max_concurrency: 30 }, { tokens_per_day: 1_000_000 }])(
    "is not counted by what only counts tokens, of which agents send 25 at once, also beside %p",
    async (beside) => {
      const { id, key } = await gate.createKey({ requests_per_minute: 2, ...beside });
      const paths = ["/v1/messages/count_tokens?beta=true", "/v1/responses/input_tokens"];
      const count = async (path: string) => (await gate.send(path, { model: "m" }, { key })).status;
      expect((await gate.post(key)).status).toBe(200);
      expect(await Promise.all(Array.from({ length: 26 }, (_, at) => count(paths[at % 2] ?? "")))).toEqual(
        Array.from({ length: 26 }, () => 200),
      );
      expect([(await gate.post(key)).status, (await gate.post(key)).status]).toEqual([200, 429]);
      // Not every spelling is the one that agents send.
      const others = ["/v1/messages/batches", "/v1/messages/count_tokens/"];
      expect(await Promise.all([...others, ...paths].map(count))).toEqual([429, 429, 200, 200]);
      expect(await gate.getKey(id)).toMatchObject({ used: { requests_per_minute: 2 } });
    },
  );
});

describe("a limit of tokens", () => {
  test("of a day is not worth a retry, and names the time at which it resets", async () => {
    const { id, key } = await gate.createKey({ tokens_per_day: 50 });
    const first = await gate.post(key, { script: "usage=30,30" });
    expect(first.headers.get("x-ratelimit-limit-tokens")).toBe("50");
    expect(await gate.getKey(id)).toMatchObject({
      used: { tokens_per_day: 60 },
      limit_states: { tokens_per_day: { limit: 50, used: 60, reserved: 0, estimated: 0, left: 0 } },
    });
    const refused = await gate.post(key);
    expect(refused.headers.get("x-should-retry")).toBe("false");
    expect(refused.headers.get("x-ratelimit-reset-tokens")).toMatch(/^(?:\d+h\d+m|\d+m)?\d+s$/);
    // Some clients sleep until then.
    expect(refused.headers.has("retry-after")).toBe(false);
    expect(await errorOf(refused)).toMatchObject({
      status: 402,
      type: "insufficient_quota",
      code: "insufficient_quota",
      param: "tokens_per_day",
      message: "This API key is limited to 50 tokens per day; it is free again at midnight, Seoul. Ask ops.",
    });
  });

  test.each([
    ["/v1/chat/completions", { max_tokens: 5000 }, "max_tokens"],
    ["/v1/chat/completions", { max_completion_tokens: 5000 }, "max_completion_tokens"],
    ["/v1/chat/completions", { max_tokens: 10, max_completion_tokens: 5000 }, "max_completion_tokens"],
    ["/v1/responses", { max_output_tokens: 5000 }, "max_output_tokens"],
    ["/v1/messages", { max_tokens: 5000 }, "max_tokens"],
  ])("of tokens tells the client which member to lower: %s with %j", async (path, members, name) => {
    const { key } = await gate.createKey({ tokens_per_day: 500 });
    const body = { model: "m", input: "Hi", messages: [{ role: "user", content: "Hi" }] };
    const send = (more: object) => gate.send(path, { ...body, ...more }, { key, script: "usage=30,30" });
    // The first may be larger than the limit.
    await (await send({})).text();
    const { status, message } = await errorOf(await send(members));
    expect([status, message]).toEqual([
      path === "/v1/responses" ? 429 : 402,
      expect.stringContaining(`: lower ${name} to at most `),
    ]);
  });

  test("of a month tells Codex when it resets", async () => {
    const { key } = await gate.createKey({ tokens_per_month: 50 });
    const send = (body: object, path = "/v1/responses") =>
      gate.send(path, { model: "m", input: "Hi", ...body }, { key, script: "usage=30,30" });
    expect(await (await send({})).text()).toContain('"usage"');
    for (const refused of [await send({}), await send({ stream: true }), await send({}, "/v1/responses/compact")]) {
      expect(refused.headers.has("retry-after")).toBe(false);
      const { message, resets_at, resets_in_seconds, ...error } = await errorOf(refused);
      expect(error).toEqual({ status: 429, type: "usage_limit_reached", param: null, code: "tokens_per_month" });
      expect(message).toMatch(/; it is free again on 1 [A-Z][a-z]+\. Ask ops\.$/);
      expect(new Date(Number(resets_at) * 1000).toISOString()).toEndWith("T15:00:00.000Z");
      expect(Number(resets_at) - Number(resets_in_seconds)).toBeWithin(Date.now() / 1000 - 30, Date.now() / 1000 + 1);
      expect(resets_in_seconds).toBeInteger();
    }
  });

  test("reserves the estimated input and the capped max_tokens while a request runs, and keeps what one costs that is left", async () => {
    const { id, key } = await gate.createKey({ tokens_per_minute: 1_000_000 });
    const body = { ...chat, max_tokens: 99_999_999, stream: true };
    const client = await gate.postRaw(key, "gap=forever@1; usage=5,6", body);
    await client.nextEvent();
    const estimate = Math.floor(JSON.stringify(body).length / 3);
    const reserved = 16_384 + estimate;
    const { used, limit_states: states } = await gate.getKey(id);
    expect(used["tokens_per_minute"]).toBe(reserved);
    expect(states).toEqual({
      tokens_per_minute: {
        limit: 1_000_000,
        used: 0,
        reserved,
        left: 1_000_000 - reserved,
        estimated: null,
        resets_at: expect.stringMatching(/\+09:00$/),
      },
    });
    client.reset();
    await pollUntil(async () => (await gate.getKey(id)).used["tokens_per_minute"] === estimate);
    expect(await gate.getKey(id)).toMatchObject({ total_input_tokens: 0, total_estimated_tokens: estimate });
    const [row] = await pollUntil(async () => {
      const { requests } = await gate.admin.expectOk<{ requests: object[] }>("GET", `/api/requests?key_id=${id}`);
      return requests.length > 0 && requests;
    });
    expect(row).toMatchObject({ outcome: "client_left", output_tokens: 0, estimated_tokens: estimate });
  });

  test("is reported with what fails before its tokens are reserved", async () => {
    const { key } = await gate.createKey({ tokens_per_day: 1000, requests_per_minute: 5, allowed_models: ["m"] });
    await gate.post(key, { script: "usage=30,30", body: { ...chat, model: "m" } });
    const failed = await Promise.all([
      gate.send("/v1/chat/completions", { ...chat, model: "other" }, { key }),
      gate.send("/v1/chat/completions", `{${'"model":"m",'.repeat(65)}"model":"m"}`, { key }),
      gate.send("/v1/tollgate/other", undefined, { key }),
    ]);
    expect(failed.map(({ status }) => status)).toEqual([403, 400, 404]);
    for (const response of failed) {
      expect(response.headers.get("x-ratelimit-remaining-tokens")).toBe("940");
      expect(response.headers.get("x-ratelimit-remaining-requests")).toBe("4");
    }
  });

  test("does not refuse what generates nothing", async () => {
    const { key } = await gate.createKey({ tokens_per_month: 1 });
    await gate.post(key, { script: "usage=30,30" });
    expect((await gate.post(key)).status).toBe(402);
    expect((await gate.send("/v1/models", undefined, { key })).status).toBe(200);
  });
});

describe("what is left of the limits by the calendar, to Codex,", () => {
  const codex = "Codex Desktop/0.171.0 (Mac OS 26.1.0; arm64) unknown (Codex Desktop; 26.1119.1)";
  const ask = (key: string, userAgent: string, script = "", path = "/v1/responses") =>
    fetch(`${gate.url}${path}`, {
      method: "POST",
      headers: {
        "x-api-key": key,
        "content-type": "application/json",
        "user-agent": userAgent,
        "x-simulate": `header=x-codex-primary-used-percent: 97; header=x-codex_other-primary-used-percent: 98; ${script}`,
      },
      body: JSON.stringify({ model: "m", max_output_tokens: 8, input: "Hi" }),
    });
  const shown = ({ headers }: Response) =>
    Object.fromEntries([...headers].filter(([name]) => name.includes("-used-percent") || name.includes("-minutes")));

  /** The headers after `used` of 10,000 tokens by day, and by month of ten times as many. */
  async function shownAfter(used: number, userAgent: string, path?: string) {
    const { key } = await gate.createKey({ tokens_per_day: 10_000, tokens_per_month: 100_000 });
    await gate.post(key, { script: `usage=${used},0` });
    return shown(await ask(key, userAgent, "", path));
  }
  const both = (day: string, month: string) => ({
    "x-codex-primary-used-percent": day,
    "x-codex-primary-window-minutes": "1440",
    "x-codex-secondary-used-percent": month,
    "x-codex-secondary-window-minutes": "43200",
  });

  test.each([
    [0, codex, both("0", "0")],
    [8200, codex, both("82", "8")],
    [8200, "codex_exec/0.169.0 (Debian 13.0.0; x86_64) unknown", both("82", "8")],
    [8999, codex, both("89", "8")],
    [9000, codex, {}],
    [9600, codex, {}],
    [10_000, codex, {}],
    [8200, "codexbar/1.0", {}],
    [8200, "curl/8.14", {}],
  ])("after %i of 10,000 tokens of a day, %s gets %j", async (used, userAgent, expected) => {
    expect(await shownAfter(used, userAgent)).toEqual(expected);
  });

  test("stands on every path, with the time at which it is free again, and not where only a minute is limited", async () => {
    const path = "/v1/chat/completions";
    expect(await shownAfter(8200, codex, path)).toEqual(both("82", "8"));
    const { key } = await gate.createKey({ tokens_per_day: 10_000, max_concurrency: 1 });
    const { headers } = await ask(key, codex, "status=400");
    const midnight = Number(headers.get("x-codex-primary-reset-at"));
    expect(midnight % 86_400).toBe(15 * 3600);
    expect(midnight * 1000 - Date.now()).toBeWithin(0, 86_400_001);
    expect(headers.get("x-codex-secondary-reset-at")).toBeNull();
    const minute = await gate.createKey({ tokens_per_minute: 10_000, requests_per_minute: 100 });
    expect(shown(await ask(minute.key, codex))).toEqual({});
  });

  test("is the backend's where the key has no limits", async () => {
    expect(shown(await ask(gate.key, codex))).toEqual({
      "x-codex-primary-used-percent": "97",
      "x-codex_other-primary-used-percent": "98",
    });
  });

  test("leaves out what running requests reserve", async () => {
    const { key } = await gate.createKey({ tokens_per_day: 10_000 });
    const running = await gate.postRaw(key, "gap=forever@1", { ...chat, max_tokens: 5000, stream: true });
    await running.bodyContaining("data:");
    expect(shown(await ask(key, codex))).toMatchObject({ "x-codex-primary-used-percent": "0" });
    running.close();
  });
});
