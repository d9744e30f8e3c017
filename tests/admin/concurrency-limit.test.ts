import { expect, test } from "bun:test";
import { createConcurrencyLimit } from "../../src/admin/concurrency-limit.ts";

const settle = async (steps = 10) => {
  for (let step = 0; step < steps; step += 1) await Promise.resolve();
};

test("runs so many calls at once, queues so many more in order, and refuses the rest", async () => {
  const limit = createConcurrencyLimit({ running: 2, waiting: 2 });
  const started: number[] = [];
  const ends: Array<() => void> = [];
  const work = (id: number) =>
    limit(() => {
      started.push(id);
      return new Promise<number>((resolve) => ends.push(() => resolve(id)));
    });
  const results = [1, 2, 3, 4, 5].map(work);
  expect(await results[4]).toBeUndefined();
  expect(started).toEqual([1, 2]);
  ends[1]?.();
  expect(await results[1]).toBe(2);
  await settle();
  expect(started).toEqual([1, 2, 3]);
  const late = work(6);
  ends[0]?.();
  ends[2]?.();
  await Promise.all([results[0], results[2]]);
  await settle();
  expect(started).toEqual([1, 2, 3, 4, 6]);
  ends[3]?.();
  ends[4]?.();
  expect([await results[3], await late]).toEqual([4, 6]);
});

test("a call that fails frees its place and rejects", async () => {
  const limit = createConcurrencyLimit({ running: 1, waiting: 1 });
  const failing = limit(() => Promise.reject(new Error("no")));
  const next = limit(async () => "next");
  await expect(failing).rejects.toThrow("no");
  expect(await next).toBe("next");
});
