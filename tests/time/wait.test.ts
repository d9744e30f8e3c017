import { expect, test } from "bun:test";
import { createBackoff } from "../../src/time/wait.ts";

test("doubles the wait up to the cap", () => {
  const backoff = createBackoff(1000, 30_000, () => 1);
  expect(Array.from({ length: 7 }, () => backoff.next())).toEqual([1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
});

test("waits at least half of the doubled value", () => {
  const backoff = createBackoff(1000, 30_000, () => 0);
  expect([backoff.next(), backoff.next()]).toEqual([500, 1000]);
});

test("starts again after a reset", () => {
  const backoff = createBackoff(1000, 30_000, () => 1);
  backoff.next();
  backoff.next();
  backoff.reset();
  expect(backoff.next()).toBe(1000);
});
