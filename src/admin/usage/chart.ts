import type { AdminDeps } from "../http/deps.ts";
import {
  bucketFloor,
  minuteOf,
  minutesPerDay,
  minutesPerHour,
  msPerDay,
  msPerMinute,
  timestampOf,
} from "../../time/seoul.ts";
import { ApiError } from "../http/errors.ts";
import { parseTimestamp } from "../http/query.ts";
import { isByModel } from "../../store/reports/chart.ts";
import type { ChartColumns, ChartRange } from "../../store/reports/contract.ts";
import { countersBody, readReport } from "./report.ts";
import type { ChartQuery, UsageChart } from "./contract.ts";
import { existingBucketMinutes, hourDays, multipleOf, usageFilterOf } from "./ranges.ts";

const maxDays = 366;
/** Buckets within the hour reach no further back, however long minute counts are kept. */
const minuteDays = 31;
const maxBuckets = 2000;

export const getUsageChart =
  ({ store, clock, retention }: AdminDeps) =>
  async ({ query }: { query: ChartQuery }): Promise<UsageChart> => {
    const range = {
      ...(await wholeBuckets(query, clock(), { store, retention })),
      by: query.by,
      metric: query.metric ?? "output",
      top: query.top,
      listed: query.list,
      ...usageFilterOf(query),
      known: knownBuckets(query),
    };
    return chartBody(range, await readReport(store.usage.chart(range)));
  };

const timestampOfMinute = (minute: number): string => timestampOf(minute * msPerMinute);

const chartBody = ({ from, to, bucketMinutes, metric }: ChartRange, chart: ChartColumns): UsageChart => ({
  from: timestampOfMinute(from),
  to: timestampOfMinute(to),
  bucket_minutes: bucketMinutes,
  metric,
  first_bucket: timestampOfMinute(chart.firstMinute),
  key_count: chart.count,
  ...countersBody(chart),
  keys: { id: chart.listed.id, name: chart.listed.name, ...countersBody(chart.listed) },
  series: chart.series.map(({ id, values }) => ({ key_id: id, values })),
  other: { key_count: chart.other.count, ...countersBody(chart.other), values: chart.other.values },
});

/** Minutes since the epoch. */
interface Buckets {
  from: number;
  to: number;
  bucketMinutes: number;
}

/** Whole buckets around the requested times, and none after the current one. */
async function wholeBuckets(
  query: ChartQuery,
  nowMs: number,
  kept: Pick<AdminDeps, "store" | "retention">,
): Promise<Buckets> {
  const { bucket_minutes: requested } = query;
  const toMs = Math.min(parseTimestamp("to", query.to) ?? nowMs + 1, nowMs + 1);
  const fromMs = parseTimestamp("from", query.from) ?? toMs - msPerDay;
  if (fromMs >= toMs) throw new ApiError(400, "from must be before to and not in the future");
  if (fromMs < nowMs - maxDays * msPerDay) throw new ApiError(400, `from must be at most ${maxDays} days ago`);
  if (fromMs < nowMs - minuteDays * msPerDay && requested % minutesPerHour > 0)
    throw new ApiError(400, `bucket_minutes must be a multiple of 60 if from is more than ${minuteDays} days ago`);
  const bucketMinutes = isByModel({ by: query.by, ...usageFilterOf(query) })
    ? multipleOf(fromMs < nowMs - hourDays * msPerDay ? minutesPerDay : minutesPerHour, requested)
    : await existingBucketMinutes({ from: fromMs, bucketMinutes: requested }, nowMs, kept);
  const from = bucketFloor(minuteOf(fromMs), bucketMinutes);
  const to = bucketFloor(minuteOf(toMs - 1), bucketMinutes) + bucketMinutes;
  if ((to - from) / bucketMinutes > maxBuckets)
    throw new ApiError(400, `bucket_minutes must divide the time into at most ${maxBuckets} buckets`);
  return { from, to, bucketMinutes };
}

function knownBuckets({ by, have = "", since }: ChartQuery): ChartRange["known"] {
  const sinceMs = parseTimestamp("since", since);
  // A model is asked for without those that are known: names have no bound.
  if (sinceMs === undefined || by === "model") return undefined;
  return { ids: have.split(",").filter(Boolean).map(Number), minute: minuteOf(sinceMs) };
}
