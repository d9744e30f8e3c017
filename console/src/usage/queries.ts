import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { dayMs, minuteMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { chosenSpan, type TimeSpan } from "../lib/time-range.ts";
import { keepPreviousData, queryClient, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import {
  type BucketsRequest,
  pointsOf,
  selectionParameters,
  sinceOf,
  type UsageBuckets,
  usageBucketsFrom,
  type UsagePoint,
} from "./usage-buckets.ts";
import type { UsageMetric } from "./usage-sums.ts";

/** The most keys that the API gives a series of their own. */
const maxSeries = 1000;
/** So many values at once do not delay the server's streams. */
const maxValues = 100_000;

/** The buckets of all keys that are shown, for a CSV, in parts. A chart has one metric. */
export async function getUsagePoints(shown: UsageBuckets): Promise<UsagePoint[]> {
  const { request, span, bucketMinutes, keyCount } = shown;
  const points: UsagePoint[] = [];
  const partMs = Math.ceil(maxValues / Math.min(maxSeries, keyCount + 1)) * bucketMinutes * minuteMs;
  for (let { from } = span; from < span.to; from += partMs) {
    const part = { from, to: Math.min(from + partMs, span.to) };
    const of = (metric: UsageMetric): Promise<UsageBuckets> =>
      getUsageBuckets({ ...request, bucketMinutes, metric, top: maxSeries, list: maxSeries }, part, undefined);
    points.push(...pointsOf({ requests: await of("requests"), input: await of("input"), output: await of("output") }));
  }
  return points;
}

const spanParameters = ({ from, to }: TimeSpan): { from: string; to: string } => ({
  from: new Date(from).toISOString(),
  to: new Date(to).toISOString(),
});

/**
 * The server's buckets are wider than requested where minute counts are no longer kept.
 * @param before what the last response has left; only the buckets since then are fetched if they continue it
 */
async function getUsageBuckets(
  request: BucketsRequest,
  span: TimeSpan,
  before: UsageBuckets | undefined,
): Promise<UsageBuckets> {
  const { metric, top, list, bucketMinutes } = request;
  const since = sinceOf(before, span, serverNow());
  const body = await responseBody(
    api.usage.chart.get({
      query: {
        ...spanParameters(span),
        ...selectionParameters(request),
        ...(before !== undefined &&
          since !== undefined && { since: new Date(since).toISOString(), have: [...before.series.keys()].join(",") }),
        bucket_minutes: bucketMinutes,
        metric,
        top,
        list,
      },
    }),
  );
  if (since === undefined) return usageBucketsFrom(body, request, serverNow());
  // Buckets of another width do not continue those from before.
  if (body.bucket_minutes !== before?.bucketMinutes) return getUsageBuckets(request, span, undefined);
  return usageBucketsFrom(body, request, serverNow(), before);
}

export const useUsageBucketsQuery = (
  request: () => BucketsRequest,
  days: number,
  enabled: () => boolean,
): QueryResult<typeof getUsageBuckets> =>
  useQuery(() => {
    const queryKey = ["usage", "chart", request()];
    return {
      enabled: enabled(),
      queryKey,
      queryFn: () => {
        const span = chosenSpan(request().timeRange, serverNow(), days);
        return getUsageBuckets(request(), span, queryClient.getQueryData(queryKey));
      },
      refetchInterval: refetchSoonerAfterError(refetchBucketsMs(request(), days)),
      placeholderData: keepPreviousData,
    };
  });

/** Usage in a span that does not move. */
export interface FixedRequest {
  request: BucketsRequest;
  span: TimeSpan;
}

async function getFixedBuckets(wanted: FixedRequest | undefined) {
  if (wanted === undefined) throw new Error("No span was requested");
  const buckets = await getUsageBuckets(wanted.request, wanted.span, undefined);
  return { buckets, request: wanted, fetchedAt: buckets.fetchedAt };
}

export const useFixedBucketsQuery = (wanted: () => FixedRequest | undefined): QueryResult<typeof getFixedBuckets> =>
  useQuery(() => {
    const found = wanted();
    return {
      enabled: found !== undefined,
      queryKey: ["usage", "before", found],
      queryFn: () => getFixedBuckets(found),
      placeholderData: keepPreviousData,
    };
  });

const refetchBucketsMs = ({ timeRange }: BucketsRequest, days: number): number => {
  const { from, to } = chosenSpan(timeRange, serverNow(), days);
  return to - from <= dayMs + minuteMs ? 15_000 : 60_000;
};

const getUsageTotal = () => responseBody(api.usage.total.get());

export const useUsageTotalQuery = (enabled: () => boolean): QueryResult<typeof getUsageTotal> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["usage", "total"],
    queryFn: getUsageTotal,
    refetchInterval: 15_000,
  }));

const getReconciliation = () => responseBody(api.reconciliation.get({ query: { days: 30 } }));
export type Reconciliation = Awaited<ReturnType<typeof getReconciliation>>;

export const useReconciliationQuery = (): QueryResult<typeof getReconciliation> =>
  useQuery(() => ({ queryKey: ["reconciliation"], queryFn: getReconciliation, refetchInterval: 60_000 }));
