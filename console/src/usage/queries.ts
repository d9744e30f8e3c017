import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { dayMs, minuteMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { chosenSpan, type TimeSpan } from "../lib/time-range.ts";
import { keepPreviousData, queryClient, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import { type BucketsRequest, sinceOf, type UsageBuckets, usageBucketsFrom } from "./usage-buckets.ts";
import { filterParameters } from "./usage-filters.ts";

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
  const { by, metric, top, list, bucketMinutes } = request;
  const since = sinceOf(before, span, serverNow());
  const body = await responseBody(
    api.usage.chart.get({
      query: {
        ...spanParameters(span),
        by,
        ...filterParameters(request.filter),
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

const refetchBucketsMs = ({ timeRange }: BucketsRequest, days: number): number => {
  const { from, to } = chosenSpan(timeRange, serverNow(), days);
  return to - from <= dayMs + minuteMs ? 15_000 : 60_000;
};
