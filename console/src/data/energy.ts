import { floorToStep, minuteMs } from "./seoul-time.ts";
import type { TimeSpan } from "./time-range.ts";

/** Watts by the start of their bucket, epoch milliseconds. */
export type PowerHistory = ReadonlyMap<number, number>;

export interface EnergyPerTokens {
  wattHours: number;
  /** Only those of buckets in which power is known: tokens without their energy would make the rest look cheap. */
  outputTokens: number;
  /** Undefined where no token was counted. */
  wattHoursPerThousand: number | undefined;
}

/**
 * Energy beside tokens, over the usage buckets of a span. Each power point counts its whole bucket at its maximum, so the energy is an upper bound.
 * @param power finer than or as fine as the usage buckets
 * @param output output tokens by usage bucket, epoch milliseconds
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

/** Maxima in steps from the span's start; NaN where nothing was measured, so that a gap stays a gap. */
export function powerSteps(power: PowerHistory, span: TimeSpan, stepMs: number): Float64Array {
  const values = new Float64Array(Math.ceil((span.to - span.from) / stepMs)).fill(Number.NaN);
  for (const [start, watts] of power) {
    if (start < span.from || start >= span.to) continue;
    const step = Math.floor((start - span.from) / stepMs);
    const known = values[step] ?? Number.NaN;
    values[step] = Number.isNaN(known) ? watts : Math.max(known, watts);
  }
  return values;
}
