import { expect, test } from "bun:test";
import { createPacer } from "./pacer.ts";
import { pollUntil } from "../poll-until.ts";

test("subscribers are called at their own rates", async () => {
  const pacer = createPacer();
  const ticks = { slow: 0, fast: 0 };
  pacer.subscribe(20, () => ticks.slow++);
  pacer.subscribe(100, () => ticks.fast++);
  const startedAt = performance.now();
  await pollUntil(() => ticks.slow >= 10);
  const elapsedMs = performance.now() - startedAt;
  pacer.close();
  // Never too many. How many are missed depends on the machine's load.
  expect(elapsedMs).toBeGreaterThan(490);
  expect(ticks.fast).toBeLessThanOrEqual(elapsedMs / 10 + 1);
  expect(ticks.fast).toBeGreaterThan(ticks.slow);
});

test("after unsubscribing, a subscriber is no longer called, and the others are", async () => {
  const pacer = createPacer();
  let left = 0;
  let stayed = 0;
  const leave = pacer.subscribe(200, () => {
    left++;
    leave();
  });
  pacer.subscribe(200, () => stayed++);
  await pollUntil(() => stayed >= 5);
  pacer.close();
  expect(left).toBe(1);
});

test("ticks missed while the process was busy are not made up in a burst", async () => {
  const pacer = createPacer();
  let ticks = 0;
  pacer.subscribe(100, () => ticks++);
  await pollUntil(() => ticks === 1);
  const busyUntil = performance.now() + 200;
  while (performance.now() < busyUntil);
  const before = ticks;
  const startedAt = performance.now();
  await pollUntil(() => ticks >= before + 12);
  const elapsedMs = performance.now() - startedAt;
  pacer.close();
  expect(ticks - before).toBeLessThanOrEqual(elapsedMs / 10 + 3);
});
