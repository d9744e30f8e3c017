import type { AdminDeps } from "../http/deps.ts";
import { Histogram, type LatencyHistogram, latencyHistograms } from "../../domain/histogram.ts";
import { mapCounters } from "../../domain/usage.ts";
import type { StoredLatency, TrafficRange } from "../../store/traffic/contract.ts";
import { bucketFloor, minuteOf, minutesPerHour, msPerMinute, timestampOf } from "../../time/seoul.ts";
import type { LatencyBody, LatencyQuery, LatencyTotal, Quantiles } from "./traffic-contract.ts";

/** Longer windows are read from the sums of whole hours. */
const maxMinuteHours = 48;

/** Buckets that are too fine for the window are widened to whole hours. */
export function trafficRange(nowMs: number, hours: number, requestedMinutes: number): TrafficRange {
  const bucketMinutes =
    hours > maxMinuteHours ? Math.ceil(requestedMinutes / minutesPerHour) * minutesPerHour : requestedMinutes;
  const byHour = bucketMinutes % minutesPerHour === 0;
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
  ({ store, clock }: AdminDeps) =>
  async ({ query }: { query: LatencyQuery }): Promise<LatencyBody> => {
    const { hours, by, model } = query;
    const window = trafficRange(clock(), hours, query.bucket_minutes);
    const points: LatencyBody["points"] = [];
    const totals = new Map<string | null, LatencySum>();
    const point = createLatencySum();
    for (const range of readsOf(window)) {
      for (const row of await store.traffic.latencies(range, { allModels: by === "all", model })) {
        const name = by === "model" ? row.model : null;
        read(point, row);
        points.push({ bucket_start: timestampOf(row.minute * msPerMinute), ...bodyOf(name, point) });
        add(totals.getOrInsertComputed(name, createLatencySum), point);
      }
    }
    return {
      hours,
      bucket_minutes: window.bucketMinutes,
      by,
      points,
      totals: Array.from(totals, ([name, sum]) => bodyOf(name, sum)).toSorted(
        (a, b) => b.request_count - a.request_count,
      ),
    };
  };

type LatencySum = { requestCount: number } & Record<LatencyHistogram, Histogram>;

const createLatencySum = (): LatencySum => ({
  requestCount: 0,
  ...mapCounters(latencyHistograms, () => new Histogram()),
});

/** Replaces what the sum held. */
function read(sum: LatencySum, row: StoredLatency): void {
  sum.requestCount = row.requestCount;
  for (const metric of latencyHistograms) {
    sum[metric].clear();
    sum[metric].addText(row[metric]);
  }
}

function add(sum: LatencySum, added: LatencySum): void {
  sum.requestCount += added.requestCount;
  for (const metric of latencyHistograms) sum[metric].addAll(added[metric]);
}

const bodyOf = (model: string | null, sum: LatencySum): LatencyTotal => ({
  model,
  request_count: sum.requestCount,
  first_byte_ms: quantilesBody(sum.firstByte),
  duration_ms: quantilesBody(sum.duration),
  tokens_per_second: quantilesBody(sum.tokensPerSecond),
  queue_wait_ms: quantilesBody(sum.queueWait),
});

function quantilesBody(sum: Histogram): Quantiles | null {
  const { count } = sum;
  if (count === 0) return null;
  const [p1 = 0, p5 = 0, p50 = 0, p95 = 0, p99 = 0] = sum.quantiles([0.01, 0.05, 0.5, 0.95, 0.99]);
  return { count, p1, p5, p50, p95, p99 };
}
