import { afterEach, expect, test } from "bun:test";
import {
  aggregatedCounters,
  aggregatedMetricsText,
  createMetrics,
  type Metrics,
  metricsContentType,
} from "../../src/telemetry/metrics.ts";
import { createInFlight, observeAll } from "../../src/telemetry/observers.ts";
import type { RequestRecord } from "../../src/domain.ts";
import { pollUntil } from "../support/poll-until.ts";

const opened: Metrics[] = [];

afterEach(() => {
  for (const metrics of opened.splice(0)) metrics.close();
});

function open({ perKey = false, waiting = { requests: 0, keys: 0, sinceMs: 0 } } = {}): Metrics {
  const inFlight = createInFlight();
  const options = {
    version: "1.2.3",
    commit: "abc1234",
    perKey,
    waiting: () => waiting,
    refusedRequests: () => 5,
    inFlight: inFlight.count,
    droppedRequests: () => 0,
    tokenless: () => 0,
  };
  const metrics = createMetrics(options);
  opened.push(metrics);
  return { ...metrics, ...observeAll(inFlight, metrics) };
}

const record = (fields: Partial<RequestRecord> = {}): RequestRecord => ({
  requestId: "req-1",
  clientAddress: "192.0.2.7",
  method: "POST",
  path: "/v1/chat/completions",
  status: 200,
  outcome: "completed",
  keyId: 7,
  modelAsked: "claude-x",
  modelSent: "served",
  code: undefined,
  cause: undefined,
  receivedBytes: 5_000,
  streamed: true,
  upstreamMs: 180,
  firstByteMs: 200,
  durationMs: 42_000,
  usage: { inputTokens: 1200, outputTokens: 350 },
  ...fields,
});

/** The value of a series in the text; undefined if it has none. */
function valueOf(text: string, series: string): number | undefined {
  const line = text.split("\n").find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

const seriesOf = (text: string, name: string) => text.split("\n").filter((line) => line.startsWith(`${name}{`));

function finish(metrics: Metrics, ...records: RequestRecord[]): void {
  for (const each of records) {
    metrics.started();
    metrics.finished(each);
  }
}

test("counts a request by endpoint, method, outcome and status class", async () => {
  const metrics = open();
  finish(
    metrics,
    record(),
    record(),
    record({ status: 502, outcome: "upstream_failed", code: "upstream_unreachable", cause: "ECONNREFUSED" }),
  );
  const text = await metrics.text();
  const labels = 'method="POST",endpoint="/v1/chat/completions"';
  expect(valueOf(text, `tollgate_requests_total{${labels},outcome="completed",status="2xx"}`)).toBe(2);
  expect(valueOf(text, `tollgate_requests_total{${labels},outcome="upstream_failed",status="5xx"}`)).toBe(1);
  expect(valueOf(text, 'tollgate_upstream_errors_total{code="upstream_unreachable",cause="ECONNREFUSED"}')).toBe(1);
});

test("keeps counts from scrape to scrape", async () => {
  const metrics = open();
  finish(metrics, record());
  await metrics.text();
  expect(valueOf(await metrics.text(), 'tollgate_tokens_total{direction="input"}')).toBe(1200);
  finish(metrics, record());
  expect(valueOf(await metrics.text(), 'tollgate_tokens_total{direction="input"}')).toBe(2400);
});

test("two concurrent scrapes count nothing twice", async () => {
  const metrics = open();
  finish(metrics, record());
  const texts = await Promise.all([metrics.text(), metrics.text()]);
  expect(texts.map((text) => valueOf(text, 'tollgate_tokens_total{direction="output"}'))).toEqual([350, 350]);
});

test("a request is in flight from its start to its end", async () => {
  const metrics = open();
  metrics.started();
  metrics.started();
  expect(valueOf(await metrics.text(), "tollgate_requests_in_flight")).toBe(2);
  metrics.finished(record());
  expect(valueOf(await metrics.text(), "tollgate_requests_in_flight")).toBe(1);
});

test("puts durations into buckets from milliseconds to twenty minutes", async () => {
  const metrics = open();
  finish(metrics, record(), record({ durationMs: 1_100_000 }), record({ durationMs: 4, firstByteMs: undefined }));
  const text = await metrics.text();
  const bucket = (name: string, le: string) =>
    valueOf(text, `${name}_bucket{le="${le}",endpoint="/v1/chat/completions",streamed="true"}`);
  const durations = ["0.01", "30", "60", "600", "1200", "+Inf"].map((le) =>
    bucket("tollgate_request_duration_seconds", le),
  );
  expect(durations).toEqual([1, 1, 2, 2, 3, 3]);
  const firstBytes = ["0.1", "0.25", "+Inf"].map((le) => bucket("tollgate_time_to_first_byte_seconds", le));
  expect(firstBytes).toEqual([0, 2, 2]);
});

test("counts refused requests but does not measure their duration", async () => {
  const metrics = open();
  finish(metrics, record({ outcome: "refused", status: 401, keyId: undefined, usage: undefined, durationMs: 0.2 }));
  const text = await metrics.text();
  expect(seriesOf(text, "tollgate_requests_total")).toHaveLength(1);
  expect(seriesOf(text, "tollgate_request_duration_seconds_count")).toEqual([]);
});

test("bounds the number of series, whatever clients send", async () => {
  const metrics = open();
  for (let index = 0; index < 2000; index += 1) {
    finish(
      metrics,
      record({
        method: `VERB${index}`,
        path: `/v1/models/${index}"}\n`,
        status: 100 + index,
        outcome: "upstream_failed",
        code: `code_${index}`,
        cause: `cause_${index}`,
      }),
    );
  }
  const text = await metrics.text();
  expect(seriesOf(text, "tollgate_requests_total").length).toBeLessThanOrEqual(6);
  expect(seriesOf(text, "tollgate_request_duration_seconds_count")).toHaveLength(1);
  expect(seriesOf(text, "tollgate_upstream_errors_total").length).toBeLessThanOrEqual(51);
  expect(valueOf(text, 'tollgate_upstream_errors_total{code="other",cause="other"}')).toBe(1950);
});

test("a path cannot add a label", async () => {
  const metrics = open();
  finish(metrics, record({ path: '/v1/x",evil="1', method: "__proto__" }));
  const text = await metrics.text();
  expect(text).not.toContain("evil");
  expect(text).not.toContain("__proto__");
  expect(text).toContain('method="other",endpoint="other"');
});

test("adds no series by key by default", async () => {
  const metrics = open();
  finish(metrics, record());
  expect(await metrics.text()).not.toContain("key_id");
});

test("adds series by key id if enabled", async () => {
  const metrics = open({ perKey: true });
  finish(metrics, record(), record({ usage: undefined }), record({ keyId: 8 }), record({ keyId: undefined }));
  const text = await metrics.text();
  expect(valueOf(text, 'tollgate_key_requests_total{key_id="7"}')).toBe(2);
  expect(valueOf(text, 'tollgate_key_tokens_total{key_id="7",direction="input"}')).toBe(1200);
  expect(valueOf(text, 'tollgate_key_tokens_total{key_id="8",direction="output"}')).toBe(350);
  expect(seriesOf(text, "tollgate_key_requests_total")).toHaveLength(2);
});

test("a secret in a path or a method reaches no label", async () => {
  const secret = "sk-3f2a90d1c5e84b7f9c1b";
  const metrics = open({ perKey: true });
  finish(metrics, record({ path: `/v1/${secret}`, method: secret }));
  expect(await metrics.text()).not.toContain(secret);
});

test("reads the uncommitted usage at each scrape", async () => {
  const waiting = { requests: 3, keys: 2, sinceMs: 1500 };
  const metrics = open({ waiting });
  const text = await metrics.text();
  expect(valueOf(text, "tollgate_ledger_waiting_requests")).toBe(3);
  expect(valueOf(text, "tollgate_ledger_waiting_keys")).toBe(2);
  expect(valueOf(text, "tollgate_ledger_refused_requests")).toBe(5);
  expect(valueOf(text, "tollgate_ledger_lag_seconds")).toBe(1.5);
  waiting.requests = 0;
  expect(valueOf(await metrics.text(), "tollgate_ledger_waiting_requests")).toBe(0);
});

test("counts commits, failed commits and GPU samples", async () => {
  const metrics = open();
  metrics.committed(0.7);
  metrics.committed(30);
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
  const text = await open().text();
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
  const metrics = open();
  const readDelay = async () => valueOf(await metrics.text(), "tollgate_event_loop_delay_max_seconds") ?? 0;
  await pollUntil(async () => (await readDelay()) > 0);
  const blockedUntil = performance.now() + 1000;
  while (performance.now() < blockedUntil);
  await pollUntil(async () => (await readDelay()) > 0.9);
  expect(await readDelay()).toBeLessThan(0.9);
});

test("two servers in one process count separately", async () => {
  const [one, other] = [open(), open()];
  finish(one, record());
  expect(seriesOf(await other.text(), "tollgate_requests_total")).toEqual([]);
});

test("sums the snapshots of several processes", async () => {
  const [one, other] = [
    open({ waiting: { requests: 1, keys: 1, sinceMs: 100 } }),
    open({ waiting: { requests: 2, keys: 1, sinceMs: 4000 } }),
  ];
  finish(one, record());
  finish(other, record(), record());
  one.started();
  const snapshots = await Promise.all([one, other].map((metrics) => metrics.snapshot()));
  const text = await aggregatedMetricsText(structuredClone(snapshots));
  const labels = 'endpoint="/v1/chat/completions"';
  expect(valueOf(text, `tollgate_requests_total{method="POST",${labels},outcome="completed",status="2xx"}`)).toBe(3);
  expect(valueOf(text, `tollgate_request_duration_seconds_bucket{le="60",${labels},streamed="true"}`)).toBe(3);
  expect(valueOf(text, "tollgate_requests_in_flight")).toBe(1);
  expect(valueOf(text, "tollgate_ledger_waiting_requests")).toBe(3);
  expect(valueOf(text, "tollgate_ledger_lag_seconds")).toBe(4);
  expect(valueOf(text, 'tollgate_build_info{version="1.2.3",commit="abc1234"}')).toBe(1);
});

test("merges the counters of several processes without their gauges", async () => {
  const [one, other] = [open({ perKey: true }), open({ perKey: true })];
  finish(one, record());
  finish(other, record(), record());
  const counters = await aggregatedCounters(
    structuredClone(await Promise.all([one, other].map((each) => each.snapshot()))),
  );
  const text = await aggregatedMetricsText(structuredClone([counters, await one.snapshot()]));
  const labels = 'endpoint="/v1/chat/completions"';
  expect(valueOf(text, `tollgate_requests_total{method="POST",${labels},outcome="completed",status="2xx"}`)).toBe(4);
  expect(valueOf(text, `tollgate_request_duration_seconds_count{${labels},streamed="true"}`)).toBe(4);
  expect(valueOf(text, 'tollgate_key_requests_total{key_id="7"}')).toBe(4);
  expect(valueOf(text, "tollgate_processes")).toBe(1);
  expect(await aggregatedMetricsText([counters])).not.toContain(" gauge");
});

test("the text and its content type follow the exposition format", async () => {
  const metrics = open({ perKey: true });
  finish(metrics, record());
  expect(metricsContentType).toBe("text/plain; version=0.0.4; charset=utf-8");
  const line = /^(#( HELP| TYPE) [a-z_]+ .+|[a-z_]+(\{([a-z_]+="[^"\\\n]*",?)+\})? [-+.\deInf]+|)$/;
  expect((await metrics.text()).split("\n").filter((each) => !line.test(each))).toEqual([]);
});
