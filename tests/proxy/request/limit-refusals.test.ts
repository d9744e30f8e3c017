import { describe, expect, test } from "bun:test";
import type { ProxyError } from "../../../src/proxy/errors.ts";
import { limitRefusal, rateLimitHeaders } from "../../../src/proxy/request/limit-refusals.ts";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { LimitName } from "../../../src/domain/keys.ts";

const now = Date.parse("2026-05-01T12:00:00.000+09:00");

/** The error of a request that a limit of 1 refuses. */
function refuse(refusedBy: LimitName, waitMs: number, path = "/v1/chat/completions"): ProxyError {
  return limitRefusal(
    refusedBy,
    [{ id: 1, limits: { ...noLimits, [refusedBy]: 1 } }],
    { waitMs, at: 0, used: () => 1 },
    { path, now },
  );
}

const headersOf = (error: ProxyError) => new Map(error.details?.headers);
const untilTomorrowMs = 43_200_000;

test.each([
  ["requests_per_minute", 61_000, "60", "request per minute; try again in 60 seconds."],
  ["requests_per_minute", 60_001, "60", "request per minute; try again in 60 seconds."],
  ["tokens_per_minute", 61_000, "60", "token per minute; try again in 60 seconds."],
  ["requests_per_minute", 1001, "2", "request per minute; try again in 2 seconds."],
  ["max_concurrency", 1000, "1", "concurrent request; try again in 1 second."],
] as const)("a refusal by %s for %i ms asks to wait %s seconds", (name, waitMs, seconds, sentence) => {
  const error = refuse(name, waitMs, "/v1/responses");
  expect(headersOf(error).get("retry-after")).toBe(seconds);
  expect(headersOf(error).has("x-should-retry")).toBe(false);
  expect(error.details?.message).toBe(`This API key is limited to 1 ${sentence}`);
  expect(error.details?.members).toBeUndefined();
});

test.each([
  [{ tokens: 1030, inputTokens: 6, texts: 1 }, 18, "lower max_tokens to at most 976, or wait until"],
  [{ tokens: 2054, inputTokens: 6, texts: 2 }, 18, "lower max_tokens to at most 488, or wait until"],
  [{ tokens: 1030, inputTokens: 982, texts: 1 }, 18, "982 are left: wait until"],
])("a request that is larger than what is left hears by how much: %j with %i used", (reservation, used, advice) => {
  const admission = { waitMs: untilTomorrowMs, at: 0, used: () => used };
  const request = { path: "/v1/chat/completions", now, reservation: { ...reservation, prompts: 1 } };
  const refused = limitRefusal(
    "tokens_per_day",
    [{ id: 1, limits: { ...noLimits, tokens_per_day: 1000 } }],
    admission,
    request,
  );
  const { message = "", headers = [] } = refused.details ?? {};
  const start = `This request may use ${reservation.tokens} tokens, and of the limit of 1000 tokens per day, 982 are left: `;
  expect(message).toStartWith(start);
  expect(message).toContain(advice);
  expect(message).toEndWith(" wait until midnight, Seoul.");
  expect(new Map(headers).get("x-ratelimit-remaining-tokens")).toBe("982");
});

test.each([
  [18, "lower max_tokens to at most 976, or wait until"],
  [995, "4700 are left: wait until"],
])("a request that is larger than what two limits leave hears what fits both: %i used of the other", (used, advice) => {
  const limits = { ...noLimits, tokens_per_day: 1000, tokens_per_month: 5000 };
  const usedOf = (name: LimitName): number => (name === "tokens_per_month" ? 300 : used);
  const reservation = { tokens: 6006, inputTokens: 6, texts: 1, prompts: 1 };
  const admission = { waitMs: 1e9, at: 0, used: usedOf };
  const refused = limitRefusal("tokens_per_month", [{ id: 1, limits }], admission, { path: "/", now, reservation });
  expect(refused.details?.message).toContain(advice);
});

test("a refusal says nothing of what is left while the database does not tell", () => {
  const reservation = { tokens: 30, inputTokens: 6, texts: 1, prompts: 1 };
  const admission = { waitMs: 1000, at: 0, used: () => undefined };
  const limits = { ...noLimits, tokens_per_day: 1000 };
  const { details } = limitRefusal("tokens_per_day", [{ id: 1, limits }], admission, { path: "/", now, reservation });
  expect(details?.message).toBe("This API key is limited to 1000 tokens per day; try again in 1 second.");
  expect(details?.headers).toEqual([["retry-after", "1"]]);
});

test.each(["/v1/chat/completions", "/v1/responses"])(
  "a refusal by tokens that running requests reserve may be retried soon: %s",
  (path) => {
    const error = refuse("tokens_per_day", 1000, path);
    expect(headersOf(error).get("retry-after")).toBe("1");
    expect(headersOf(error).has("x-should-retry")).toBe(false);
    const message = "This API key is limited to 1 token per day; try again in 1 second.";
    expect(error.details).toEqual({ message, headers: expect.anything() });
  },
);

describe("what Codex is shown first", () => {
  const limits = { ...noLimits, tokens_per_minute: 1, tokens_per_day: 1000, tokens_per_month: 1000 };
  const minutesOf = (day: number, month: number, first: Map<number, LimitName>, keyId = 1) => {
    const used = (name: LimitName, _at = 0, isCharged = false) =>
      isCharged ? { tokens_per_day: day, tokens_per_month: month }[name as "tokens_per_day"] : 1000;
    const headers = new Map(rateLimitHeaders([{ id: keyId, limits }], used, now, { keyId, first }));
    return ["primary", "secondary"].map((place) => headers.get(`x-codex-${place}-window-minutes`));
  };

  test("changes once another limit is five points fuller, of each key apart", () => {
    const first = new Map<number, LimitName>();
    const [day, month] = ["1440", "43200"];
    expect(minutesOf(100, 100, first)).toEqual([day, month]);
    expect(minutesOf(100, 149, first)).toEqual([day, month]);
    expect(minutesOf(100, 149, first, 2)).toEqual([month, day]);
    expect(minutesOf(100, 151, first)).toEqual([month, day]);
    expect(minutesOf(200, 151, first)).toEqual([month, day]);
    expect(minutesOf(202, 151, first)).toEqual([day, month]);
  });

  test("is what it was after a response without these headers", () => {
    const first = new Map<number, LimitName>();
    expect(minutesOf(100, 899, first)).toEqual(["43200", "1440"]);
    expect(minutesOf(100, 900, first)).toEqual([undefined, undefined]);
    expect(minutesOf(100, 60, first)).toEqual(["43200", "1440"]);
  });
});
