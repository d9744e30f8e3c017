import { expect, test } from "bun:test";
import type { BackendStatus } from "../../src/domain/backends.ts";
import { aggregatedMetricsText } from "../../src/telemetry/metrics.ts";
import { requestRecord } from "../support/request-record.ts";
import { finish, openMetrics, seriesOf, valueOf } from "./open-metrics.ts";

const status = (name: string, state: BackendStatus["state"], inFlight = 0): BackendStatus => ({
  name,
  state,
  since: 0,
  inFlight,
  waiting: inFlight * 2,
  waitingForPrefill: inFlight,
});

test("requests of a file of models are counted by backend and outcome, and streams by their first byte", async () => {
  using metrics = openMetrics({ backends: async () => [] });
  const streamed = { streamed: true, firstByteMs: 300 };
  finish(
    metrics,
    requestRecord({ backend: "gpu-a", ...streamed }),
    requestRecord({ backend: "gpu-a", streamed: false, firstByteMs: 10 }),
    requestRecord({ backend: "gpu-b", outcome: "upstream_failed", status: 502 }),
    requestRecord({ backend: undefined, outcome: "refused", status: 401 }),
  );
  const text = await metrics.text();
  expect(seriesOf(text, "tollgate_backend_requests_total")).toEqual([
    'tollgate_backend_requests_total{backend="gpu-a",outcome="completed"} 2',
    'tollgate_backend_requests_total{backend="gpu-b",outcome="upstream_failed"} 1',
  ]);
  const firstBytes = 'tollgate_backend_time_to_first_byte_seconds_bucket{le="0.5",backend="gpu-a"}';
  expect([valueOf(text, firstBytes), valueOf(text, firstBytes.replace("0.5", "0.25"))]).toEqual([1, 0]);
});

test("what the choice among backends expected of their caches is counted beside what they report", async () => {
  using metrics = openMetrics({ backends: async () => [] });
  const usage = { inputTokens: 200, outputTokens: 5, cachedInputTokens: 50 };
  const expectation = { tokens: 1000, toRead: 100, isOwn: true, elsewhere: 400 };
  finish(metrics, requestRecord({ backend: "a", usage, expectation }), requestRecord({ backend: "a", usage }));
  const text = await metrics.text();
  const tokens = (name: string) => valueOf(text, `tollgate_backend_${name}_total{backend="a"}`);
  expect(["input_tokens", "cached_input_tokens", "expected_cached_input_tokens", "regret_tokens"].map(tokens)).toEqual([
    400, 100, 180, 70,
  ]);
});

test("the states are those of now: a backend that left the file has no series", async () => {
  let listed = [status("gpu-a", "in", 3), status("gpu-b", "out")];
  using metrics = openMetrics({ backends: async () => listed });
  const states = async (): Promise<string[]> =>
    seriesOf(await metrics.text(), "tollgate_backend_state").filter((line) => line.endsWith(" 1"));
  expect(await states()).toEqual([
    'tollgate_backend_state{backend="gpu-a",state="in"} 1',
    'tollgate_backend_state{backend="gpu-b",state="out"} 1',
  ]);
  const text = await metrics.text();
  expect(valueOf(text, 'tollgate_backend_in_flight_requests{backend="gpu-a"}')).toBe(3);
  expect(seriesOf(text, "tollgate_backend_waiting_requests")).toEqual([
    'tollgate_backend_waiting_requests{backend="gpu-a",for="place"} 3',
    'tollgate_backend_waiting_requests{backend="gpu-a",for="prefill"} 3',
    'tollgate_backend_waiting_requests{backend="gpu-b",for="place"} 0',
    'tollgate_backend_waiting_requests{backend="gpu-b",for="prefill"} 0',
  ]);
  listed = [status("gpu-a", "draining")];
  expect(await states()).toEqual(['tollgate_backend_state{backend="gpu-a",state="draining"} 1']);
});

test("processes of one machine report one state, not the sum of theirs", async () => {
  using one = openMetrics({ backends: async () => [status("gpu-a", "in", 3)] });
  using other = openMetrics({ backends: async () => [status("gpu-a", "in", 3)] });
  const text = await aggregatedMetricsText([await one.snapshot(), await other.snapshot()]);
  expect(valueOf(text, 'tollgate_backend_state{backend="gpu-a",state="in"}')).toBe(1);
  expect(valueOf(text, 'tollgate_backend_in_flight_requests{backend="gpu-a"}')).toBe(3);
});

test("names that change often have a bounded number of series", async () => {
  using metrics = openMetrics({ backends: async () => [] });
  for (let n = 0; n < 300; n++) finish(metrics, requestRecord({ backend: `gpu-${n}` }));
  const text = await metrics.text();
  expect(seriesOf(text, "tollgate_backend_requests_total")).toHaveLength(201);
  expect(valueOf(text, 'tollgate_backend_requests_total{backend="other",outcome="completed"}')).toBe(100);
});

test("without a file of models there are no such series", async () => {
  using metrics = openMetrics();
  finish(metrics, requestRecord({ backend: "127.0.0.1:8000" }));
  expect(await metrics.text()).not.toContain("tollgate_backend_");
});
