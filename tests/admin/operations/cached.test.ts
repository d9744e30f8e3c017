import { expect, test } from "bun:test";
import { withTimeout, cached } from "../../../src/admin/operations/health.ts";

test("loads once, shares the value, and loads again when it is too old", async () => {
  let now = 0;
  let loads = 0;
  const load = cached(
    () => now,
    100,
    async () => (loads += 1),
  );
  expect(await Promise.all([load(), load()])).toEqual([1, 1]);
  now = 99;
  expect(await load()).toBe(1);
  now = 100;
  expect(await load()).toBe(2);
});

test("a call that ends in time returns its result", async () => {
  expect(await withTimeout(10_000, "late", async () => "in time")).toBe("in time");
});

test("a call that fails returns the fallback", async () => {
  expect(await withTimeout(10_000, "late", () => Promise.reject(new Error("no")))).toBe("late");
});

test("a call that takes too long is aborted, and returns the fallback at once", async () => {
  const aborted = Promise.withResolvers<void>();
  const result = await withTimeout(20, "late", (signal) => {
    signal.addEventListener("abort", () => aborted.resolve());
    return new Promise<string>(() => {});
  });
  expect(result).toBe("late");
  await aborted.promise;
});
