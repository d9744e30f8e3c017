import type { Cost } from "../lib/money.ts";
import { minuteMs, seoulDay } from "../lib/seoul-time.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import type { UsageBuckets } from "../usage/usage-buckets.ts";

interface PowerBucket {
  /** The minutes with a reading. */
  minutes: number;
  wattHours: number;
}

/** The power of all GPUs by bucket start, epoch milliseconds. Buckets without a reading are left out. */
export type PowerHistory = ReadonlyMap<number, PowerBucket>;

/** A point of `GET /api/gpu-stats/history`. */
interface PowerPoint {
  bucket_start: string;
  measured_minutes: number;
  energy_wh: number | null;
}

export const powerHistoryFrom = (points: readonly PowerPoint[]): PowerHistory =>
  new Map(
    points.flatMap(({ bucket_start, measured_minutes, energy_wh }) =>
      energy_wh === null ? [] : [[Date.parse(bucket_start), { minutes: measured_minutes, wattHours: energy_wh }]],
    ),
  );

export interface EnergyPerTokens {
  wattHours: number;
  /** Only from buckets with a power reading: tokens without known energy would lower the rate. */
  outputTokens: number;
  /** Undefined without output tokens. */
  wattHoursPerThousand: number | undefined;
}

/**
 * Energy and output tokens over a span.
 * @param output output tokens by bucket start, epoch milliseconds, in the buckets of `power`
 */
export function energyPerTokens(
  power: PowerHistory,
  output: ReadonlyMap<number, number>,
  span: TimeSpan,
): EnergyPerTokens {
  let wattHours = 0;
  let outputTokens = 0;
  for (const [start, bucket] of power) {
    if (start < span.from || start >= span.to) continue;
    wattHours += bucket.wattHours;
    outputTokens += output.get(start) ?? 0;
  }
  return {
    wattHours,
    outputTokens,
    wattHoursPerThousand: outputTokens === 0 ? undefined : wattHours / (outputTokens / 1000),
  };
}

/** What the energy of a span cost, by the price of each day in Seoul. */
export function energyCost(
  power: PowerHistory,
  span: TimeSpan,
  prices: readonly { valid_from: string; per_kwh: number }[],
): Cost {
  const byDay = prices.toSorted((a, b) => b.valid_from.localeCompare(a.valid_from));
  let cost: number | null = null;
  let isPartial = false;
  for (const [start, { wattHours }] of power) {
    if (start < span.from || start >= span.to) continue;
    const day = seoulDay(start);
    const price = byDay.find(({ valid_from: from }) => from <= day);
    if (price === undefined) isPartial = true;
    else cost = (cost ?? 0) + (wattHours / 1000) * price.per_kwh;
  }
  return { cost, cost_is_partial: isPartial };
}

/** The mean of each step from the span's start, watts; NaN without a reading, which leaves a gap in the chart. */
export function powerSteps(power: PowerHistory, span: TimeSpan, stepMs: number): Float64Array {
  const length = Math.ceil((span.to - span.from) / stepMs);
  const [wattHours, hours] = [new Float64Array(length), new Float64Array(length)];
  for (const [start, bucket] of power) {
    if (start < span.from || start >= span.to) continue;
    const step = Math.floor((start - span.from) / stepMs);
    wattHours[step] = (wattHours[step] ?? 0) + bucket.wattHours;
    hours[step] = (hours[step] ?? 0) + bucket.minutes / 60;
  }
  return wattHours.map((energy, step) => energy / (hours[step] || Number.NaN));
}

/** Output tokens of all keys by bucket start, epoch milliseconds. */
export function outputByBucket(buckets: UsageBuckets | undefined): Map<number, number> {
  const sums = new Map<number, number>();
  if (buckets === undefined) return sums;
  for (const values of [...buckets.series.values(), buckets.other.values]) {
    for (const [index, tokens] of values.entries()) {
      const start = buckets.span.from + index * buckets.bucketMinutes * minuteMs;
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
