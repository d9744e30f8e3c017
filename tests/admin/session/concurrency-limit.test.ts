import { expect, test } from "bun:test";
import { createConcurrencyLimit } from "../../../src/admin/session/concurrency-limit.ts";

const settle = async (steps = 10) => {
  for (let step = 0; step < steps; step += 1) await Promise.resolve();
};

test("runs so many calls at once, queues so many more in order, and refuses the rest", async () => {
  const limit = createConcurrencyLimit({ running: 2, waiting: 2, reserved: 0 });
  const started: number[] = [];
  const ends: Array<() => void> = [];
  const work = (id: number) =>
    limit.run(false, () => {
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

test("known clients have places of their own, running and in the queue", async () => {
  for (const places of [
    { running: 1, waiting: 2, reserved: 2 },
    { running: 3, waiting: 0, reserved: 2 },
  ]) {
    const released = Promise.withResolvers<string>();
    const work = () => released.promise;
    const limit = createConcurrencyLimit(places);
    const first = limit.run(false, work);
    expect(await limit.run(false, work)).toBeUndefined();
    expect([limit.hasRoom(false), limit.hasRoom(true)]).toEqual([false, true]);
    const known = [limit.run(true, work), limit.run(true, work)];
    expect(await limit.run(true, work)).toBeUndefined();
    expect(limit.hasRoom(true)).toBe(false);
    released.resolve("done");
    expect(await Promise.all([first, ...known])).toEqual(["done", "done", "done"]);
    expect(await limit.run(false, work)).toBe("done");
  }
});

test("known clients go ahead of the others in the queue, in their order", async () => {
  const limit = createConcurrencyLimit({ running: 1, waiting: 4, reserved: 0 });
  const order: string[] = [];
  const enter = (name: string, isKnown: boolean) => limit.run(isKnown, async () => void order.push(name));
  await Promise.all([
    enter("first", false),
    enter("stranger", false),
    enter("another stranger", false),
    enter("known", true),
    enter("also known", true),
  ]);
  expect(order).toEqual(["first", "known", "also known", "stranger", "another stranger"]);
});
