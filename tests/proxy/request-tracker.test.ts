import { expect, test } from "bun:test";
import { trackRequest } from "../../src/proxy/request-tracker.ts";
import type { RequestRecord } from "../../src/domain.ts";

test("a request is over once, whoever says so again", () => {
  const records: RequestRecord[] = [];
  let started = 0;
  let puts = 0;
  const observer = { started: () => void started++, finished: (record: RequestRecord) => void records.push(record) };
  const exchange = trackRequest(observer, () => 0, "GET", "/v1/x");
  exchange.onFinished(() => puts++);
  exchange.status = 200;
  exchange.finish("completed");
  exchange.finish("upstream_failed", { code: "upstream_unreachable" });
  expect([started, puts, records.length]).toEqual([1, 1, 1]);
  expect(records[0]).toMatchObject({ outcome: "completed", status: 200, code: undefined });
});

test("times are counted from the request's start, and the upstream's from when it was asked", () => {
  const records: RequestRecord[] = [];
  const observer = { started: () => {}, finished: (record: RequestRecord) => void records.push(record) };
  let now = 1000;
  const exchange = trackRequest(observer, () => now, "GET", "/v1/x");
  const steps = [exchange.upstreamRequestSent, exchange.upstreamResponded, exchange.firstByte, exchange.firstByte];
  for (const step of steps) {
    now += 10;
    step();
  }
  now += 10;
  exchange.finish("completed");
  expect(records[0]).toMatchObject({ upstreamMs: 10, firstByteMs: 30, durationMs: 50 });
});
