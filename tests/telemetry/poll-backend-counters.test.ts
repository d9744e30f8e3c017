import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { BackendCounters } from "../../src/telemetry/backend-counters.ts";
import { pollBackendCounters } from "../../src/telemetry/poll-backend-counters.ts";
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

function startReading() {
  const written: (BackendCounters & { afterMiss: boolean })[] = [];
  const backend = { text: "vllm:generation_tokens_total 5" as string | undefined, reads: 0 };
  const stop = pollBackendCounters({
    fetchMetrics: async () => {
      backend.reads++;
      if (backend.text === "fails") throw new Error("connection refused");
      return backend.text;
    },
    write: async (counters) => void written.push(counters),
    log: memoryLog().log,
  });
  return { written, backend, stop };
}

test("a backend with counters is read once a minute", async () => {
  const { written, backend, stop } = startReading();
  await pass(minute);
  await pass(minute);
  expect([backend.reads, written.length]).toEqual([2, 2]);
  stop();
  await pass(60 * minute);
  expect([backend.reads, jest.getTimerCount()]).toEqual([2, 0]);
});

test.each([undefined, "fails", "other"])(
  "a backend without counters (%p) is read every quarter of an hour",
  async (text) => {
    const { written, backend, stop } = startReading();
    backend.text = text;
    for (let n = 0; n < 10; n++) await pass(minute);
    expect(backend.reads).toBe(10);
    await pass(14 * minute);
    expect(backend.reads).toBe(10);
    await pass(minute);
    await pass(15 * minute);
    expect([backend.reads, written.length]).toEqual([12, 0]);
    stop();
  },
);

test("a backend that restarts is read again in the minute after it is up", async () => {
  const { written, backend, stop } = startReading();
  await pass(minute);
  backend.text = "fails";
  for (let n = 0; n < 5; n++) await pass(minute);
  backend.text = "vllm:generation_tokens_total 1";
  await pass(minute);
  await pass(minute);
  expect(written.map(({ generatedTokens, afterMiss }) => [generatedTokens, afterMiss])).toEqual([
    [5, false],
    [1, true],
    [1, false],
  ]);
  stop();
});
