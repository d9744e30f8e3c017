import { expect, test } from "bun:test";
import { createFairQueue } from "../../src/admission/fair-queue.ts";
import { createRandom } from "../support/random.ts";

function queueOf(places: number, maxWaiting = 1000) {
  const granted: string[] = [];
  const queue = createFairQueue<string>({ places, maxWaiting, onGranted: (ticket) => void granted.push(ticket) });
  /** The tickets that got a place since the last call. */
  const taken = (): string[] => granted.splice(0);
  return { ...queue, taken };
}

test("requests get places at once while there are any, then wait, and are refused if too many wait", () => {
  const queue = queueOf(2, 1);
  expect(["a1", "a2", "a3", "a4"].map((ticket) => queue.enter(ticket, 1))).toEqual([
    "granted",
    "granted",
    "waiting",
    "full",
  ]);
});

test("a free place goes to the key with less in flight, then around, and each key keeps its order", () => {
  const queue = queueOf(2);
  for (const ticket of ["a1", "a2", "a3", "a4", "a5"]) queue.enter(ticket, 1);
  for (const ticket of ["b1", "b2"]) queue.enter(ticket, 2);
  queue.enter("c1", 3);
  queue.leave("a1");
  queue.leave("a2");
  expect(queue.taken()).toEqual(["b1", "c1"]);
  queue.leave("b1");
  queue.leave("c1");
  expect(queue.taken()).toEqual(["a3", "b2"]);
  queue.leave("a3");
  queue.leave("b2");
  expect(queue.taken()).toEqual(["a4", "a5"]);
});

test("a request that stops waiting leaves its place in the queue to the next one", () => {
  const queue = queueOf(1, 2);
  queue.enter("a1", 1);
  queue.enter("a2", 1);
  queue.enter("a3", 1);
  queue.leave("a2");
  expect(queue.enter("a4", 1)).toBe("waiting");
  queue.leave("a1");
  queue.leave("a1");
  expect(queue.taken()).toEqual(["a3"]);
  queue.leave("unknown");
  queue.leave("a3");
  expect(queue.taken()).toEqual(["a4"]);
});

test("random requests never take more than the places, and none waits while one is free", () => {
  const random = createRandom(7);
  const queue = queueOf(3, 50);
  const [running, waiting] = [new Set<string>(), new Set<string>()];
  for (let n = 0; n < 3000; n++) {
    if (random.below(2) === 0) {
      const ticket = String(n);
      const state = queue.enter(ticket, random.below(5));
      if (state === "granted") running.add(ticket);
      if (state === "waiting") waiting.add(ticket);
    } else {
      const all = [...running, ...waiting];
      const ticket = all.length === 0 ? "none" : random.pick(all);
      queue.leave(ticket);
      running.delete(ticket);
      waiting.delete(ticket);
    }
    for (const ticket of queue.taken()) {
      expect(waiting.delete(ticket)).toBe(true);
      running.add(ticket);
    }
    expect(running.size).toBeLessThanOrEqual(3);
    if (waiting.size > 0) expect(running.size).toBe(3);
  }
});
