import { expect, test } from "bun:test";
import { type TrackerDeps, RequestTracker } from "../../src/proxy/request-tracker.ts";
import type { RequestRecord } from "../../src/domain/requests.ts";

const request = { requestId: "req-1", method: "GET", path: "/v1/x", clientAddress: "192.0.2.7" };

const depsOf = (records: RequestRecord[]): TrackerDeps => ({
  addInFlight: () => () => {},
  cacheReporters: new Set(),
  observer: { finished: (record) => void records.push(record) },
  monotonic: () => 0,
});

test("times count from the request's start, and the upstream's from when the request was sent to it", () => {
  const records: RequestRecord[] = [];
  let now = 1000;
  const tracker = new RequestTracker({ ...depsOf(records), monotonic: () => now }, request);
  const steps = [
    () => tracker.upstreamRequestSent("gpu-a"),
    () => tracker.upstreamResponded(),
    tracker.firstByte,
    tracker.firstByte,
  ];
  for (const step of steps) {
    now += 10;
    step();
  }
  now += 10;
  tracker.finish("completed");
  expect(records[0]).toMatchObject({ upstreamMs: 10, firstByteMs: 30, durationMs: 50 });
});

test.each([
  [2, 6.9, 2],
  [2, 7, 7],
  [1000, 1009.9, 1000],
  [1000, 1010, 1010],
])("a request that was written after %d ms and ended after %d took %d", (writtenMs, endedMs, durationMs) => {
  const records: RequestRecord[] = [];
  let now = 0;
  const tracker = new RequestTracker({ ...depsOf(records), monotonic: () => now }, request);
  now = writtenMs;
  tracker.written = tracker.describe("completed");
  now = endedMs;
  tracker.finish("completed");
  expect(records[0]).toMatchObject({ writtenMs, durationMs });
});
