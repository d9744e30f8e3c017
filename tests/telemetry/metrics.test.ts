import { expect, test } from "bun:test";
import { aggregatedMetricsText, metricsContentType } from "../../src/telemetry/metrics.ts";
import { pollUntil } from "../support/poll-until.ts";
import { requestRecord } from "../support/request-record.ts";
import { finish, openMetrics, seriesOf, valueOf } from "./open-metrics.ts";

test("reads the uncommitted usage at each scrape", async () => {
  const waiting = { requests: 3, keys: 2, sinceMs: 1500 };
  using metrics = openMetrics({ waiting });
  const text = await metrics.text();
  expect(valueOf(text, "tollgate_ledger_waiting_requests")).toBe(3);
  expect(valueOf(text, "tollgate_ledger_waiting_keys")).toBe(2);
  expect(valueOf(text, "tollgate_ledger_refused_requests")).toBe(5);
  expect(valueOf(text, "tollgate_ledger_lag_seconds")).toBe(1.5);
  waiting.requests = 0;
  expect(valueOf(await metrics.text(), "tollgate_ledger_waiting_requests")).toBe(0);
});

test("counts commits, failed commits and GPU samples", async () => {
  using metrics = openMetrics();
  metrics.committed(0.7, []);
  metrics.committed(30, []);
  metrics.commitFailed();
  metrics.gpuSamplesReceived(8, 1);
  metrics.gpuSamplesReceived(8, 0);
  const text = await metrics.text();
  expect(valueOf(text, 'tollgate_storage_commit_duration_seconds_bucket{le="0.001"}')).toBe(1);
  expect(valueOf(text, "tollgate_storage_commit_duration_seconds_count")).toBe(2);
  expect(valueOf(text, "tollgate_storage_commit_failures_total")).toBe(1);
  expect(valueOf(text, 'tollgate_gpu_samples_total{result="stored"}')).toBe(16);
  expect(valueOf(text, 'tollgate_gpu_samples_total{result="skipped"}')).toBe(1);
});

test("describes the build and the process with real values", async () => {
  using metrics = openMetrics();
  const text = await metrics.text();
  expect(text).toContain('tollgate_build_info{version="1.2.3",commit="abc1234"} 1');
  expect(valueOf(text, "process_resident_memory_bytes")).toBeGreaterThan(1e7);
  expect(valueOf(text, "process_cpu_seconds_total")).toBeGreaterThan(0);
  const startedAt = valueOf(text, "process_start_time_seconds") ?? 0;
  expect(Math.abs(startedAt - Date.now() / 1000)).toBeLessThan(3600);
  expect(valueOf(text, "process_open_fds")).toBeGreaterThan(5);
  expect(valueOf(text, "process_max_fds")).toBeGreaterThan(valueOf(text, "process_open_fds") ?? Infinity);
  expect(text).not.toMatch(/ nan$/im);
});

test("reports the delay of a blocked event loop once", async () => {
  using metrics = openMetrics();
  const readDelay = async () => valueOf(await metrics.text(), "tollgate_event_loop_delay_max_seconds") ?? 0;
  await pollUntil(async () => (await readDelay()) > 0);
  const blockedUntil = performance.now() + 1000;
  while (performance.now() < blockedUntil);
  await pollUntil(async () => (await readDelay()) > 0.9);
  expect(await readDelay()).toBeLessThan(0.9);
});

test("gives others a turn after each 500 series, and tells all of them", async () => {
  using metrics = openMetrics({ perKey: true });
  for (let keyId = 0; keyId < 5000; keyId++) metrics.finished(requestRecord({ keyId }));
  let turns = 0;
  let isRead = false;
  const countTurns = (): void => {
    turns += 1;
    if (!isRead) setImmediate(countTurns);
  };
  countTurns();
  const text = await metrics.text().finally(() => (isRead = true));
  expect(turns).toBeGreaterThan(30);
  expect(seriesOf(text, "tollgate_key_tokens_total")).toHaveLength(10_000);
  expect(text.split("\n").filter((line) => line.startsWith("# TYPE tollgate_key_tokens_total "))).toHaveLength(1);
});

test("two servers in one process count separately", async () => {
  using one = openMetrics();
  using other = openMetrics();
  finish(one, requestRecord());
  expect(seriesOf(await other.text(), "tollgate_requests_total")).toEqual([]);
});

test("the text and its content type follow the exposition format", async () => {
  using metrics = openMetrics({ perKey: true });
  finish(metrics, requestRecord());
  expect(metricsContentType).toBe("text/plain; version=0.0.4; charset=utf-8");
  const line = /^(#( HELP| TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z_]+="[^"\\\n]*",?)+\})? [-+.\deInf]+|)$/;
  expect((await metrics.text()).split("\n").filter((each) => !line.test(each))).toEqual([]);
});

test("reports the time of the last GPU push, and nothing before the first", async () => {
  using metrics = openMetrics();
  const name = "tollgate_gpu_last_push_timestamp_seconds";
  expect(valueOf(await metrics.text(), name)).toBeUndefined();
  metrics.gpuSamplesReceived(1, 0);
  expect(Math.abs((valueOf(await metrics.text(), name) ?? 0) - Date.now() / 1000)).toBeLessThan(5);
});

test("what cannot be read keeps its last value, counts, and hides nothing else", async () => {
  let inFlight = (): number => 3;
  using metrics = openMetrics({ inFlight: () => inFlight() });
  const errors = 'tollgate_collector_errors_total{collector="tollgate_requests_in_flight"}';
  const before = await metrics.text();
  expect([valueOf(before, "tollgate_requests_in_flight"), valueOf(before, errors)]).toEqual([3, undefined]);
  inFlight = () => {
    throw new Error("unreadable");
  };
  const text = await metrics.text();
  expect([valueOf(text, "tollgate_requests_in_flight"), valueOf(text, errors)]).toEqual([3, 1]);
  expect(text.match(/^# TYPE /gm)).toEqual(before.match(/^# TYPE /gm));
  expect(await aggregatedMetricsText([await metrics.snapshot()])).toContain(`${errors} 2\n`);
  inFlight = () => 4;
  expect(valueOf(await metrics.text(), "tollgate_requests_in_flight")).toBe(4);
});

test("what was never read has no series", async () => {
  using metrics = openMetrics({
    inFlight: () => {
      throw new Error("unreadable");
    },
  });
  expect(valueOf(await metrics.text(), "tollgate_requests_in_flight")).toBeUndefined();
});

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
