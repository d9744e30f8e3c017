import { expect, test } from "bun:test";
import { createMemory } from "../../src/routing/memory.ts";

test("an owner forgets what it has not set for longest beyond its share", () => {
  const memory = createMemory({ entries: 100, perOwner: 2 });
  memory.set(1, 10, 100);
  memory.set(1, 11, 110);
  memory.set(1, 10, 100);
  memory.get(1, 11);
  memory.set(1, 12, 120);
  expect([10, 11, 12].map((name) => memory.get(1, name))).toEqual([100, undefined, 120]);
});

test("an owner with new names all the time takes no more than its share from others", () => {
  const memory = createMemory({ entries: 8, perOwner: 2 });
  for (const owner of [1, 2, 3]) memory.set(owner, 10, owner);
  for (let name = 0; name < 1000; name++) memory.set(4, name, 0);
  expect([1, 2, 3].map((owner) => memory.get(owner, 10))).toEqual([1, 2, 3]);
  expect(memory.size()).toBe(5);
});

test("in a full memory the owner forgets that was quiet for longest", () => {
  const memory = createMemory({ entries: 3, perOwner: 2 });
  for (const owner of [1, 2, 3]) memory.set(owner, 10, owner);
  memory.set(1, 10, 1);
  memory.get(2, 10);
  memory.set(4, 10, 4);
  expect([1, 2, 3, 4].map((owner) => memory.get(owner, 10))).toEqual([1, undefined, 3, 4]);
  expect(memory.size()).toBe(3);
});

test("a large memory forgets its oldest entries some at a time, and no others", () => {
  const memory = createMemory({ entries: 1000, perOwner: 500 });
  for (let name = 0; name <= 500; name++) memory.set(1, name, name);
  expect(memory.size()).toBe(498);
  expect([0, 2, 3, 500].map((name) => memory.get(1, name))).toEqual([undefined, undefined, 3, 500]);
  for (let owner = 2; owner <= 504; owner++) memory.set(owner, 0, 0);
  // Of the one that was quiet for longest, the five that were set longest ago.
  expect(memory.size()).toBe(996);
  expect([3, 7, 8, 500].map((name) => memory.get(1, name))).toEqual([undefined, undefined, 8, 500]);
});

test("a name that is set again counts once", () => {
  const memory = createMemory({ entries: 3, perOwner: 3 });
  for (let value = 0; value < 10; value++) memory.set(1, 10, value);
  expect([memory.get(1, 10), memory.size()]).toEqual([9, 1]);
});

test("whoever made it hears of each value that is replaced or makes room", () => {
  const forgotten: number[] = [];
  const memory = createMemory({ entries: 3, perOwner: 2 }, (value) => void forgotten.push(value));
  memory.set(1, 10, 100);
  memory.set(1, 10, 101);
  memory.set(1, 11, 110);
  memory.set(1, 12, 120);
  memory.set(2, 10, 200);
  memory.set(3, 10, 300);
  expect(forgotten).toEqual([100, 101, 110]);
});

test("100,000 entries of 100 owners take at most 64 bytes each", () => {
  Bun.gc(true);
  const before = process.memoryUsage().heapUsed;
  const memory = createMemory({ entries: 100_000, perOwner: 25_000 });
  for (let n = 0; n < 100_000; n++) memory.set(n % 100, n * 45_035_996_273, n * 4_503_599_627);
  Bun.gc(true);
  const bytes = (process.memoryUsage().heapUsed - before) / memory.size();
  expect(memory.size()).toBe(100_000);
  expect(bytes).toBeLessThan(64);
});
