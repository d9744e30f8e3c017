import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { startRequestLogPruning } from "../../src/telemetry/request-log-pruning.ts";
import { memoryLog } from "../store/test-store.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms);
  for (let n = 0; n < 10; n++) await Promise.resolve();
}

function startPruning(results: (boolean | Error)[]) {
  const pruned = { count: 0 };
  const stop = startRequestLogPruning({
    async prune() {
      const result = results[pruned.count++] ?? false;
      if (result instanceof Error) throw result;
      return result;
    },
    log: memoryLog().log,
  });
  return { pruned, stop };
}

test("the log is pruned at the start, each second while there is more, and then each minute", async () => {
  const { pruned, stop } = startPruning([true, true, false, false]);
  for (let n = 0; n < 5; n++) await pass(1000);
  expect(pruned.count).toBe(3);
  await pass(60_000);
  expect(pruned.count).toBe(4);
  stop();
  await pass(60 * 60_000);
  expect([pruned.count, jest.getTimerCount()]).toEqual([4, 0]);
});

test("a database that fails is tried again in a minute", async () => {
  const { pruned, stop } = startPruning([new Error("the database does not respond"), false]);
  for (let n = 0; n < 5; n++) await pass(1000);
  expect(pruned.count).toBe(1);
  await pass(60_000);
  expect(pruned.count).toBe(2);
  stop();
});
