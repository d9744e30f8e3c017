import { expect, test } from "bun:test";
import { createPacer } from "../../src/simulator/pacer.ts";
import { until } from "../support/until.ts";

test("members are called at their own rates", async () => {
  const pacer = createPacer();
  const beats = { slow: 0, fast: 0 };
  pacer.join(20, () => beats.slow++);
  pacer.join(100, () => beats.fast++);
  const startedAt = performance.now();
  await until(() => beats.slow >= 10);
  const elapsedMs = performance.now() - startedAt;
  pacer.close();
  // Never too many; how many are missing depends on how loaded the machine is.
  expect(elapsedMs).toBeGreaterThan(490);
  expect(beats.fast).toBeLessThanOrEqual(elapsedMs / 10 + 1);
  expect(beats.fast).toBeGreaterThan(beats.slow);
});

test("a member that left is not called any more, and the others are", async () => {
  const pacer = createPacer();
  let left = 0;
  let stayed = 0;
  const leave = pacer.join(200, () => {
    left++;
    leave();
  });
  pacer.join(200, () => stayed++);
  await until(() => stayed >= 5);
  pacer.close();
  expect(left).toBe(1);
});

test("beats that were missed while the process was busy do not come in a burst", async () => {
  const pacer = createPacer();
  let beats = 0;
  pacer.join(100, () => beats++);
  await until(() => beats === 1);
  const busyUntil = performance.now() + 200;
  while (performance.now() < busyUntil);
  const before = beats;
  const startedAt = performance.now();
  await Bun.sleep(100);
  const elapsedMs = performance.now() - startedAt;
  pacer.close();
  expect(beats - before).toBeLessThanOrEqual(elapsedMs / 10 + 3);
});
