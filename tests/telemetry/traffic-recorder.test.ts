import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { Histogram } from "../../src/domain/histogram.ts";
import { createTrafficRecorder, type EncodedTraffic } from "../../src/telemetry/traffic-recorder.ts";
import { loggedRecord } from "../store/logged-requests.ts";
import { memoryLog } from "../store/test-store.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

const minute = 60_000;

function start() {
  const written: EncodedTraffic[] = [];
  const state = { now: 10 * minute, fails: false };
  const { entries, log } = memoryLog();
  const recorder = createTrafficRecorder({
    write: async (traffic) => {
      if (state.fails) throw new Error("no database");
      written.push(traffic);
    },
    clock: () => state.now,
    log,
  });
  return { recorder, written, state, entries };
}

const usage = { inputTokens: 5, outputTokens: 100 };
const finish = (
  { finished }: { finished(record: RequestRecord): void },
  ...records: Partial<RequestRecord>[]
): void => {
  for (const fields of records) finished(loggedRecord({ usage, ...fields }));
};

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms);
  for (let n = 0; n < 5; n++) await Promise.resolve();
}

test("requests are summed by minute and model, and written after some seconds", async () => {
  const { recorder, written } = start();
  finish(recorder, {}, {}, { modelSent: "other" }, { streamed: false });
  expect(written).toEqual([]);
  await pass(5000);
  const [served] = written[0]?.latencies ?? [];
  expect(written[0]?.latencies.map(({ model, requestCount }) => [model, requestCount])).toEqual([
    ["served", 3],
    ["other", 1],
  ]);
  expect(served?.minute).toBe(10);
  expect([served?.duration, served?.firstByte, served?.tokensPerSecond].map((one) => new Histogram(one).count)).toEqual(
    [3, 2, 2],
  );
  await pass(60_000);
  expect([written.length, jest.getTimerCount()]).toEqual([1, 0]);
});

test("outcomes are summed by key and code, and refusals have no latency", async () => {
  const { recorder, written } = start();
  finish(
    recorder,
    {},
    { status: 429 },
    { outcome: "timed_out", status: 504, code: "upstream_timeout", cause: "first_byte_timeout" },
    { outcome: "client_left", status: 200 },
    { outcome: "refused", status: 401, code: "invalid_api_key", keyId: undefined, modelSent: "stranger" },
  );
  await pass(5000);
  expect(written[0]?.outcomes.map(({ keyId, outcome, code, count }) => [keyId, outcome, code, count])).toEqual([
    [1, "completed", "", 1],
    [1, "completed", "status_429", 1],
    [1, "timed_out", "upstream_timeout", 1],
    [1, "client_left", "client_left", 1],
    [0, "refused", "invalid_api_key", 1],
  ]);
  expect(written[0]?.latencies.map(({ model }) => model)).toEqual(["served"]);
});

test("responses without tokens are logged once an hour", async () => {
  const { recorder, state, entries } = start();
  const none = { usage: { inputTokens: 0, outputTokens: 0 } };
  const warnings = () => entries.filter(({ level }) => level === "warn").length;
  finish(recorder, { ...none, path: "/v1/models" }, {});
  expect(warnings()).toBe(0);
  finish(recorder, none, none);
  expect(warnings()).toBe(1);
  state.now += 60 * minute;
  finish(recorder, none);
  expect(warnings()).toBe(2);
  await recorder.close();
});

test("what could not be written waits, together with what came meanwhile", async () => {
  const { recorder, written, state } = start();
  state.fails = true;
  finish(recorder, {});
  await pass(5000);
  finish(recorder, {}, { status: 500 });
  await pass(5000);
  state.fails = false;
  await pass(5000);
  expect(written).toHaveLength(1);
  expect(written[0]?.latencies.map(({ requestCount }) => requestCount)).toEqual([3]);
  expect(written[0]?.outcomes.map(({ count }) => count)).toEqual([2, 1]);
});

test("a close writes what is left, and waits for no timer", async () => {
  const { recorder, written } = start();
  finish(recorder, {});
  await recorder.close();
  expect([written.length, jest.getTimerCount()]).toEqual([1, 0]);
});

test("requests are summed by backend too, and those that failed because of it are its errors", async () => {
  const { recorder, written } = start();
  const gpuA = { backend: "gpu-a" };
  const cached = { usage: { inputTokens: 10, cachedInputTokens: 6, outputTokens: 100 } };
  finish(
    recorder,
    { ...gpuA, ...cached, streamed: true, firstByteMs: 20, durationMs: 520 },
    { ...gpuA, ...cached, streamed: false },
    { ...gpuA, usage: undefined, status: 502, outcome: "upstream_failed" },
    { ...gpuA, usage: undefined, status: 500 },
    { ...gpuA, usage: undefined, status: 404 },
    { ...gpuA, usage: undefined, outcome: "client_left", status: 499 },
    { ...gpuA, outcome: "limited", status: 429 },
    { backend: undefined, outcome: "refused", status: 401 },
  );
  await pass(5000);
  const [sum, ...others] = written[0]?.backends ?? [];
  expect(others).toEqual([]);
  expect(sum).toMatchObject({ minute: 10, backend: "gpu-a", requestCount: 6, errorCount: 2 });
  expect(sum).toMatchObject({ inputTokens: 20, cachedTokens: 12, outputTokens: 200 });
  expect(sum).toMatchObject({ streamedTokens: 100, streamedUs: 500_000 });
});
