import { floorToStep, minuteMs } from "./seoul-time.ts";
import type { TimeSpan } from "./time-range.ts";
import type { UsageChartData } from "./usage-chart.ts";

/** Watts by bucket start, epoch milliseconds. */
export type PowerHistory = ReadonlyMap<number, number>;

export interface EnergyPerTokens {
  wattHours: number;
  /** Only from buckets with a power reading: tokens without known energy would lower the rate. */
  outputTokens: number;
  /** Undefined without output tokens. */
  wattHoursPerThousand: number | undefined;
}

/**
 * Energy and output tokens over a span. Each power point is its bucket's maximum and counts for the whole bucket, so the energy is an upper bound.
 * @param power buckets no wider than the usage buckets
 * @param output output tokens by start of the usage bucket, epoch milliseconds
 */
export function energyPerTokens(
  power: { watts: PowerHistory; bucketMinutes: number },
  output: { byBucket: ReadonlyMap<number, number>; bucketMinutes: number },
  span: TimeSpan,
): EnergyPerTokens {
  const bucketMs = output.bucketMinutes * minuteMs;
  const measuredBuckets = new Set<number>();
  let wattHours = 0;
  for (const [start, watts] of power.watts) {
    if (start < span.from || start >= span.to) continue;
    wattHours += (watts * power.bucketMinutes) / 60;
    measuredBuckets.add(floorToStep(start, bucketMs));
  }
  let outputTokens = 0;
  for (const start of measuredBuckets) outputTokens += output.byBucket.get(start) ?? 0;
  return {
    wattHours,
    outputTokens,
    wattHoursPerThousand: outputTokens === 0 ? undefined : wattHours / (outputTokens / 1000),
  };
}

/** The maximum of each step from the span's start; NaN without a reading, which leaves a gap in the chart. */
export function powerSteps(power: PowerHistory, span: TimeSpan, stepMs: number): Float64Array {
  const values = new Float64Array(Math.ceil((span.to - span.from) / stepMs)).fill(Number.NaN);
  for (const [start, watts] of power) {
    if (start < span.from || start >= span.to) continue;
    const step = Math.floor((start - span.from) / stepMs);
    const highest = values[step] ?? Number.NaN;
    values[step] = Number.isNaN(highest) ? watts : Math.max(highest, watts);
  }
  return values;
}

/** Output tokens of all keys by bucket start, epoch milliseconds. */
export function outputByBucket(chart: UsageChartData | undefined): Map<number, number> {
  const sums = new Map<number, number>();
  if (chart === undefined) return sums;
  for (const values of [...chart.series.values(), chart.other.values]) {
    for (const [index, tokens] of values.entries()) {
      const start = chart.span.from + index * chart.bucketMinutes * minuteMs;
      if (tokens > 0) sums.set(start, (sums.get(start) ?? 0) + tokens);
    }
  }
  return sums;
}

/** The sum of each step from the span's start. */
export function outputSteps(byBucket: ReadonlyMap<number, number>, span: TimeSpan, stepMs: number): Float64Array {
  const values = new Float64Array(Math.ceil((span.to - span.from) / stepMs));
  for (const [start, tokens] of byBucket) {
    const step = Math.floor((start - span.from) / stepMs);
    if (step >= 0 && step < values.length) values[step] = (values[step] ?? 0) + tokens;
  }
  return values;
}
