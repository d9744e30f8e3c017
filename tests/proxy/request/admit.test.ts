import { expect, test } from "bun:test";
import type { LimitName } from "../../../src/domain/keys.ts";
import { ProxyError } from "../../../src/proxy/errors.ts";
import { requireAdmitted } from "../../../src/proxy/request/admit.ts";
import { noLimits } from "../../../src/store/keys/rules.ts";

const now = Date.parse("2026-05-01T12:00:00.000+09:00");

/** The error of a request that a limit of 1 refuses. */
function refuse(refusedBy: LimitName, waitMs: number): ProxyError {
  const admission = { refusedBy, waitMs, used: () => 1, handOver: () => undefined, end() {} };
  try {
    requireAdmitted({ ...noLimits, [refusedBy]: 1 }, admission, now);
  } catch (error) {
    if (error instanceof ProxyError) return error;
  }
  throw new Error("The request was not refused");
}

test.each([
  ["requests_per_minute", 61_000, "60", "requests per minute; try again in 60 seconds."],
  ["requests_per_minute", 60_001, "60", "requests per minute; try again in 60 seconds."],
  ["tokens_per_minute", 61_000, "60", "tokens per minute; try again in 60 seconds."],
  ["requests_per_minute", 1001, "2", "requests per minute; try again in 2 seconds."],
  ["max_concurrency", 1000, "1", "concurrent requests; try again in 1 second."],
  ["tokens_per_day", 43_200_000, "43200", "tokens per day; the limit resets at 2026-05-02T00:00:00.000+09:00."],
] as const)("a refusal by %s for %i ms asks to wait %s seconds", (name, waitMs, seconds, sentence) => {
  const error = refuse(name, waitMs);
  expect(new Map(error.details?.headers).get("retry-after")).toBe(seconds);
  expect(error.details?.message).toBe(`This API key is limited to 1 ${sentence}`);
});
