import { expect, test } from "bun:test";
import { aggregatedMetricsText } from "../../src/telemetry/metrics.ts";
import { requestRecord } from "../support/request-record.ts";
import { finish, openMetrics, valueOf } from "./open-metrics.ts";

test("sums the snapshots of several processes", async () => {
  using one = openMetrics({ waiting: { requests: 1, keys: 1, sinceMs: 100 }, inFlight: () => 1 });
  using other = openMetrics({ waiting: { requests: 2, keys: 1, sinceMs: 4000 }, inFlight: () => 2 });
  finish(one, requestRecord());
  finish(other, requestRecord(), requestRecord());
  const snapshots = await Promise.all([one, other].map((metrics) => metrics.snapshot()));
  const text = await aggregatedMetricsText(structuredClone(snapshots));
  const labels = 'endpoint="/v1/chat/completions"';
  expect(valueOf(text, `tollgate_requests_total{method="POST",${labels},outcome="completed",status="2xx"}`)).toBe(3);
  expect(valueOf(text, `tollgate_request_duration_seconds_bucket{le="60",${labels},streamed="true"}`)).toBe(3);
  expect(valueOf(text, "tollgate_requests_in_flight")).toBe(3);
  expect(valueOf(text, "tollgate_ledger_waiting_requests")).toBe(3);
  expect(valueOf(text, "tollgate_ledger_lag_seconds")).toBe(4);
  expect(valueOf(text, 'tollgate_build_info{version="1.2.3",commit="abc1234"}')).toBe(1);
});
