import { dayMs } from "../lib/seoul-time.ts";
import type { Fetched } from "../lib/series.ts";
import { chosenSpan, type TimeRange, type TimeSpan } from "../lib/time-range.ts";

/** What the history of one GPU, or of the power of all, is requested with. */
export interface HistoryRequest {
  days: number;
  bucketMinutes: number;
}

/** How many whole days a history has to reach back to hold a range. */
export const daysBack = (range: TimeRange, now: number): number =>
  Math.max(1, Math.ceil((now - chosenSpan(range, now).from) / dayMs));

/** Whether a history reaches back far enough for a range. */
export const coversRange = ({ request, fetchedAt }: Fetched<HistoryRequest>, range: TimeRange): boolean =>
  chosenSpan(range, fetchedAt).from >= fetchedAt - request.days * dayMs;

/** The measures of a GPU that have a history, as the API calls them. */
export type GpuMeasure = "power_draw_w" | "utilization_pct" | "memory_used_mb" | "temp_c";

/** A point of `GET /api/gpu-stats/history` of one GPU. */
type GpuHistoryPoint = { bucket_start: string } & {
  [Field in GpuMeasure | `${GpuMeasure}_max`]?: number | null;
};

interface GpuBucket {
  /** Epoch milliseconds. */
  start: number;
  point: GpuHistoryPoint;
}

/** Oldest first. */
type GpuHistory = readonly GpuBucket[];

export const gpuHistoryFrom = (points: readonly GpuHistoryPoint[]): GpuHistory =>
  points.map((point) => ({ start: Date.parse(point.bucket_start), point }));

/** Two series in steps from the span's start; NaN without a reading. */
export interface GpuSteps {
  /** The mean of the buckets' means. */
  mean: Float64Array;
  highest: Float64Array;
}

export function gpuSteps(history: GpuHistory, measure: GpuMeasure, span: TimeSpan, stepMs: number): GpuSteps {
  const length = Math.ceil((span.to - span.from) / stepMs);
  const [sums, counts] = [new Float64Array(length), new Float64Array(length)];
  const highest = new Float64Array(length).fill(Number.NaN);
  for (const { start, point } of history) {
    const [mean, max] = [point[measure] ?? undefined, point[`${measure}_max`] ?? undefined];
    if (start < span.from || start >= span.to || mean === undefined || max === undefined) continue;
    const step = Math.floor((start - span.from) / stepMs);
    sums[step] = (sums[step] ?? 0) + mean;
    counts[step] = (counts[step] ?? 0) + 1;
    const before = highest[step] ?? Number.NaN;
    highest[step] = before > max ? before : max;
  }
  return { mean: sums.map((sum, step) => sum / (counts[step] || Number.NaN)), highest };
}
