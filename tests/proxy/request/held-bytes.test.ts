import { expect, test } from "bun:test";
import { createHeldBytes } from "../../../src/proxy/request/held-bytes.ts";

test("a key takes up to its share, all keys together up to the whole budget", () => {
  const budget = createHeldBytes(100, 40);
  const [a, b, c] = [budget.open(1), budget.open(2), budget.open(3)];
  expect([a.take(30), a.take(11), a.take(10), budget.open(1).take(1)]).toEqual([true, false, true, false]);
  expect([b.take(40), c.take(21), c.take(20)]).toEqual([true, false, true]);
});

test("what is released can be taken again, and releasing twice returns nothing twice", () => {
  const budget = createHeldBytes(100, 100);
  const first = budget.open(1);
  const second = budget.open(1);
  first.take(60);
  second.take(40);
  first.release();
  first.release();
  expect([budget.open(1).take(61), budget.open(1).take(60)]).toEqual([false, true]);
});
