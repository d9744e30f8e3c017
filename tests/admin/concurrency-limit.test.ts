import { expect, test } from "bun:test";
import { createConcurrencyLimit } from "../../src/admin/concurrency-limit.ts";

const settle = async (steps = 10) => {
  for (let step = 0; step < steps; step += 1) await Promise.resolve();
};

test("lets so many run at once, so many wait in order, and turns the rest away", async () => {
  const turnstile = createConcurrencyLimit({ running: 2, waiting: 2 });
  const begun: number[] = [];
  const ends: Array<() => void> = [];
  const work = (id: number) =>
    turnstile(() => {
      begun.push(id);
      return new Promise<number>((resolve) => ends.push(() => resolve(id)));
    });
  const results = [1, 2, 3, 4, 5].map(work);
  expect(await results[4]).toBeUndefined();
  expect(begun).toEqual([1, 2]);
  ends[1]?.();
  expect(await results[1]).toBe(2);
  await settle();
  expect(begun).toEqual([1, 2, 3]);
  const late = work(6);
  ends[0]?.();
  ends[2]?.();
  await Promise.all([results[0], results[2]]);
  await settle();
  expect(begun).toEqual([1, 2, 3, 4, 6]);
  ends[3]?.();
  ends[4]?.();
  expect([await results[3], await late]).toEqual([4, 6]);
});

test("a failure frees its place and is the caller's", async () => {
  const turnstile = createConcurrencyLimit({ running: 1, waiting: 1 });
  const failing = turnstile(() => Promise.reject(new Error("no")));
  const next = turnstile(async () => "next");
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("next");
});
