import { ceilToStep, floorToStep, hourMs, minuteMs } from "./seoul-time.ts";
import type { TimeSpan } from "./time-range.ts";

interface Bucket {
  bucket_start: string | null;
}

/**
 * The values of buckets in the steps of a chart; several buckets in one step are combined.
 * @param valueOf null: the bucket has no value
 */
export function valuesInSteps<T extends Bucket>(
  buckets: readonly T[],
  { span, stepMs }: { span: TimeSpan; stepMs: number },
  valueOf: (bucket: T) => number | null,
  combine: (a: number, b: number) => number,
): Float64Array {
  const values = new Float64Array(Math.max(0, Math.ceil((span.to - span.from) / stepMs))).fill(Number.NaN);
  for (const bucket of buckets) {
    const at = bucket.bucket_start === null ? Number.NaN : Date.parse(bucket.bucket_start);
    const step = Math.floor((at - span.from) / stepMs);
    const value = valueOf(bucket);
    if (value === null || !(step >= 0 && step < values.length)) continue;
    const before = values[step] ?? Number.NaN;
    values[step] = Number.isNaN(before) ? value : combine(before, value);
  }
  return values;
}

export const add = (a: number, b: number): number => a + b;

/**
 * The last hours in whole buckets, the incomplete one too. Like the server's, they end with the current minute, and buckets
 * are aligned to Seoul's clock.
 */
export function lastHours(hours: number, bucketMinutes: number, now: number): TimeSpan {
  const bucketMs = bucketMinutes * minuteMs;
  const from = floorToStep(ceilToStep(now + 1, minuteMs) - hours * hourMs, bucketMs);
  return { from, to: ceilToStep(now + 1, bucketMs) };
}
