import { expect, test } from "bun:test";
import { answerWithin, cached } from "../../src/admin/cached.ts";

test("asks once, hands the same answer to all, and asks again when it is old", async () => {
  let now = 0;
  let asked = 0;
  const answer = cached(
    () => now,
    100,
    async () => (asked += 1),
  );
  expect(await Promise.all([answer(), answer()])).toEqual([1, 1]);
  now = 99;
  expect(await answer()).toBe(1);
  now = 100;
  expect(await answer()).toBe(2);
});

test("work that ends in time is what it gives", async () => {
  expect(await answerWithin(10_000, "late", async () => "in time")).toBe("in time");
});

test("work that fails is what was said instead", async () => {
  expect(await answerWithin(10_000, "late", () => Promise.reject(new Error("no")))).toBe("late");
});

test("work that takes too long is told so, and not waited for", async () => {
  const told = Promise.withResolvers<void>();
  const answer = await answerWithin(20, "late", (signal) => {
    signal.addEventListener("abort", () => told.resolve());
    return new Promise<string>(() => {});
  });
  expect(answer).toBe("late");
  await told.promise;
});
