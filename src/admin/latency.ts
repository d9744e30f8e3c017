import { addEncoded, countOf, type Histogram, quantilesOf } from "../histogram.ts";
import type { Store } from "../store/store.ts";
import type { StoredLatency, TrafficRange } from "../store/traffic-store.ts";
import type { WallClock } from "../time/clock.ts";
import { bucketFloor, minuteOf, minutesPerHour, msPerMinute, timestampOf } from "../time/seoul.ts";
import { ApiError } from "./errors.ts";
import type { LatencyBody, LatencyQuery, LatencyTotal, Quantiles } from "./insight-schemas.ts";

export interface LatencyDeps {
  store: Pick<Store, "traffic">;
  clock: WallClock;
}

/** Longer windows are read from the sums of whole hours. */
const maxMinuteHours = 48;

/** @throws ApiError if the buckets are too fine for the window */
export function trafficRange(nowMs: number, hours: number, bucketMinutes: number): TrafficRange {
  const byHour = bucketMinutes % minutesPerHour === 0;
  if (!byHour && hours > maxMinuteHours) {
    throw new ApiError(400, `bucket_minutes must be a multiple of 60 if hours is above ${maxMinuteHours}`);
  }
  const to = minuteOf(nowMs) + 1;
  return { from: bucketFloor(to - hours * minutesPerHour, bucketMinutes), to, byHour, bucketMinutes };
}

/** Some thousand rows each, so that counts are written in between. */
const minutesPerRead = 4 * minutesPerHour;
const hoursPerRead = 7 * 24;

/** Parts of a range that are read one after the other. Each has whole buckets. */
export function readsOf(range: TrafficRange): TrafficRange[] {
  const minutes = range.byHour ? hoursPerRead * minutesPerHour : minutesPerRead;
  const length = Math.ceil(minutes / range.bucketMinutes) * range.bucketMinutes;
  const reads: TrafficRange[] = [];
  for (let { from } = range; from < range.to; from += length) {
    reads.push({ ...range, from, to: Math.min(from + length, range.to) });
  }
  return reads;
}

export const getLatency =
  ({ store, clock }: LatencyDeps) =>
  async ({ query }: { query: LatencyQuery }): Promise<LatencyBody> => {
    const { hours, bucket_minutes, by, model } = query;
    const points = new Map<string, Sum>();
    const totals = new Map<string, Sum>();
    for (const range of readsOf(trafficRange(clock(), hours, bucket_minutes))) {
      for (const row of await store.traffic.latencies(range, { allModels: by === "all", model })) {
        const name = by === "model" ? row.model : null;
        addTo(points, `${row.minute} ${name}`, { bucket: row.minute, name }, row);
        addTo(totals, String(name), { bucket: 0, name }, row);
      }
    }
    return {
      hours,
      bucket_minutes,
      by,
      points: [...points.values()].map((sum) =>
        Object.assign({ bucket_start: timestampOf(sum.bucket * msPerMinute) }, totalOf(sum)),
      ),
      totals: [...totals.values()].map(totalOf).toSorted((a, b) => b.request_count - a.request_count),
    };
  };

interface Sum {
  bucket: number;
  name: string | null;
  requestCount: number;
  firstByte: Histogram;
  duration: Histogram;
  tokensPerSecond: Histogram;
}

function addTo(sums: Map<string, Sum>, id: string, group: Pick<Sum, "bucket" | "name">, row: StoredLatency): void {
  const sum = sums.get(id) ?? {
    ...group,
    requestCount: 0,
    firstByte: new Map(),
    duration: new Map(),
    tokensPerSecond: new Map(),
  };
  sums.set(id, sum);
  sum.requestCount += row.requestCount;
  addEncoded(sum.firstByte, row.firstByte);
  addEncoded(sum.duration, row.duration);
  addEncoded(sum.tokensPerSecond, row.tokensPerSecond);
}

const totalOf = ({ name, requestCount, firstByte, duration, tokensPerSecond }: Sum): LatencyTotal => ({
  model: name,
  request_count: requestCount,
  first_byte_ms: quantilesBody(firstByte),
  duration_ms: quantilesBody(duration),
  tokens_per_second: quantilesBody(tokensPerSecond),
});

function quantilesBody(histogram: Histogram): Quantiles | null {
  if (histogram.size === 0) return null;
  const [p1 = 0, p5 = 0, p50 = 0, p95 = 0, p99 = 0] = quantilesOf(histogram, [0.01, 0.05, 0.5, 0.95, 0.99]);
  return { count: countOf(histogram), p1, p5, p50, p95, p99 };
}
