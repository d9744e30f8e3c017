import { expect, test } from "bun:test";
import { createBackoff } from "../../src/time/backoff.ts";

test("waits double up to the cap", () => {
  const backoff = createBackoff(1000, 30_000, () => 1);
  expect(Array.from({ length: 7 }, () => backoff.next())).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test("a wait is at least half of the doubled one, so that tries never come as a flood", () => {
  const backoff = createBackoff(1000, 30_000, () => 0);
  expect([backoff.next(), backoff.next()]).toEqual([500, 1000]);
});

test("waits start anew after a success", () => {
  const backoff = createBackoff(1000, 30_000, () => 1);
  backoff.next();
  backoff.next();
  backoff.reset();
  expect(backoff.next()).toBe(1000);
});
