import { expect, test } from "bun:test";
import { createMemory } from "../../src/routing/memory.ts";

test("an owner forgets what it has not set for longest beyond its share", () => {
  const memory = createMemory({ entries: 100, perOwner: 4 });
  for (const name of [10, 11, 10, 12, 13, 10]) memory.set(1, name, name);
  memory.get(1, 11);
  memory.set(1, 14, 14);
  expect([10, 11, 12, 13, 14].map((name) => memory.get(1, name))).toEqual([10, undefined, undefined, 13, 14]);
  expect(memory.size()).toBe(3);
});

test("an owner with new names all the time takes no more than its share from others", () => {
  const memory = createMemory({ entries: 10, perOwner: 4 });
  for (const owner of [1, 2, 3]) memory.set(owner, 10, owner);
  for (let name = 0; name < 1000; name++) memory.set(4, name, 0);
  expect([1, 2, 3].map((owner) => memory.get(owner, 10))).toEqual([1, 2, 3]);
  expect(memory.size()).toBeLessThanOrEqual(7);
});

test("in a full memory all forget what they have not set for longest, and it never has more than fits", () => {
  const memory = createMemory({ entries: 8, perOwner: 4 });
  for (let round = 0; round < 100; round++) {
    memory.set(1, 10, round);
    memory.set(2 + round, 10, round);
    expect(memory.get(1, 10)).toBe(round);
    expect(memory.size()).toBeLessThanOrEqual(8);
  }
  expect(Array.from({ length: 4 }, (_, last) => memory.get(101 - last, 10))).toEqual([99, 98, 97, 96]);
  expect(memory.get(50, 10)).toBeUndefined();
});

test("a name that is set again counts once", () => {
  const memory = createMemory({ entries: 4, perOwner: 4 });
  for (let value = 0; value < 10; value++) memory.set(1, 10, value);
  expect([memory.get(1, 10), memory.size()]).toEqual([9, 1]);
});

test("whoever made it hears of each value once that is replaced or makes room", () => {
  const forgotten: number[] = [];
  const memory = createMemory({ entries: 100, perOwner: 4 }, (value) => void forgotten.push(value));
  memory.set(1, 10, 100);
  memory.set(1, 10, 101);
  memory.set(1, 11, 110);
  memory.set(1, 12, 120);
  memory.set(1, 10, 102);
  expect(forgotten).toEqual([100, 101]);
  memory.set(1, 13, 130);
  expect(forgotten).toEqual([100, 101, 110]);
});

test("100,000 entries of 100 owners take at most 100 bytes each", () => {
  Bun.gc(true);
  const before = process.memoryUsage().heapUsed;
  const memory = createMemory({ entries: 100_000, perOwner: 25_000 });
  for (let n = 0; n < 100_000; n++) memory.set(n % 100, n * 45_035_996_273, n * 4_503_599_627);
  Bun.gc(true);
  const bytes = (process.memoryUsage().heapUsed - before) / memory.size();
  expect(memory.size()).toBe(100_000);
  expect(bytes).toBeLessThan(100);
});
