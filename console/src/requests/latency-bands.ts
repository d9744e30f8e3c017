import type { TimeSpan } from "../lib/time-range.ts";
import { valuesInSteps } from "../lib/time-steps.ts";
import type { Latency } from "./queries.ts";

export type LatencyMetric = "first_byte_ms" | "duration_ms" | "tokens_per_second" | "queue_wait_ms";

type Quantile = "p1" | "p5" | "p50" | "p95" | "p99";
type Point = Latency["points"][number];

/** From the lowest up. For a speed, the slow end is the low one. */
export const quantilesOf = (metric: LatencyMetric): readonly [Quantile, Quantile, Quantile] =>
  metric === "tokens_per_second" ? ["p1", "p5", "p50"] : ["p50", "p95", "p99"];

/** The quantiles of a metric in the steps of a chart, as bands on top of each other. */
export function latencyBands(
  points: readonly Point[],
  steps: { span: TimeSpan; stepMs: number },
  metric: LatencyMetric,
) {
  const worse = metric === "tokens_per_second" ? Math.min : Math.max;
  let below: Float64Array | undefined;
  return quantilesOf(metric).map((quantile) => {
    const values = valuesInSteps(points, steps, (point) => point[metric]?.[quantile] ?? null, worse);
    const base = below;
    below = values;
    // The distance from the band below, so that stacked bands end at the quantile.
    return { quantile, heights: values.map((value, step) => value - (base?.[step] ?? 0)) };
  });
}

/** The nearest-rank quantile; undefined of nothing. */
export function quantileOf(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}
