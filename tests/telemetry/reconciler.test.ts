import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { BackendCounters } from "../../src/telemetry/backend-counters.ts";
import { startReconciler } from "../../src/telemetry/reconciler.ts";
import { memoryLog } from "../store/test-store.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const minute = 60_000;

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms);
  for (let n = 0; n < 10; n++) await Promise.resolve();
}

test("a backend with counters is read once a minute, one without every quarter of an hour", async () => {
  const written: BackendCounters[] = [];
  let text: string | undefined = "vllm:generation_tokens_total 5";
  let reads = 0;
  const stop = startReconciler({
    fetchMetrics: async () => {
      reads++;
      if (text === "fails") throw new Error("connection refused");
      return text;
    },
    write: async (counters) => void written.push(counters),
    log: memoryLog().log,
  });
  await pass(minute);
  await pass(minute);
  expect([reads, written.length]).toEqual([2, 2]);
  for (const other of [undefined, "fails", "other"]) {
    text = other;
    await pass(15 * minute);
  }
  expect([reads, written.length]).toEqual([5, 2]);
  await pass(minute / 2);
  expect(reads).toBe(5);
  stop();
  await pass(60 * minute);
  expect([reads, jest.getTimerCount()]).toEqual([5, 0]);
});
