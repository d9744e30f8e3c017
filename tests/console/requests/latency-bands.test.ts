import { describe, expect, test } from "bun:test";
import type { Latency } from "../../../console/src/requests/queries.ts";
import { latencyBands, quantileOf } from "../../../console/src/requests/latency-bands.ts";

const start = Date.parse("2026-11-21T00:00:00.000+09:00");
const minute = 60_000;
const span = { from: start, to: start + 4 * minute };

function point(minutes: number, p50: number): Latency["points"][number] {
  const quantiles = { count: 10, p1: p50 / 10, p5: p50 / 5, p50, p95: p50 * 2, p99: p50 * 3 };
  return {
    bucket_start: new Date(start + minutes * minute).toISOString(),
    model: null,
    request_count: 10,
    first_byte_ms: quantiles,
    duration_ms: null,
    tokens_per_second: quantiles,
    queue_wait_ms: null,
  };
}

describe("latency bands", () => {
  test("stack up to the quantiles", () => {
    const bands = latencyBands([point(0, 10), point(2, 20)], { span, stepMs: minute }, "first_byte_ms");
    expect(bands.map(({ quantile }) => quantile)).toEqual(["p50", "p95", "p99"]);
    expect(bands.map(({ heights }) => heights[2])).toEqual([20, 20, 20]);
    expect(bands[0]?.heights[1]).toBeNaN();
  });

  test("show the worst of the buckets in one step: the slowest response, and the lowest speed", () => {
    const points = [point(0, 10), point(1, 40)];
    const steps = { span, stepMs: 2 * minute };
    expect(latencyBands(points, steps, "first_byte_ms")[0]?.heights[0]).toBe(40);
    const speed = latencyBands(points, steps, "tokens_per_second");
    expect(speed.map(({ heights }) => heights[0])).toEqual([1, 1, 8]);
  });

  test("leave out what was not measured, and buckets outside the chart", () => {
    const points = [point(-1, 10), point(4, 10)];
    expect([...(latencyBands(points, { span, stepMs: minute }, "first_byte_ms")[0]?.heights ?? [])]).toEqual(
      Array.from({ length: 4 }, () => Number.NaN),
    );
    expect(latencyBands([point(0, 1)], { span, stepMs: minute }, "duration_ms")[0]?.heights[0]).toBeNaN();
  });
});

test.each([
  [[], 0.5, undefined],
  [[7], 0.95, 7],
  [[3, 1, 2], 0.5, 2],
  [[4, 3, 2, 1], 0.5, 2],
  [[4, 3, 2, 1], 0.95, 4],
])("of %p, the quantile %d is %p", (values, share, expected) => {
  expect(quantileOf(values, share)).toBe(expected as number);
});
