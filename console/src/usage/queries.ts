import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { dayMs, minuteMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { chosenSpan, type TimeSpan } from "../lib/time-range.ts";
import { keepPreviousData, queryClient, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import { getLineCosts, lastDays } from "./cost-queries.ts";
import { type DailyUsageLine, type DailyUsageRow, linesByDay, linesByDayAndKey } from "./daily-usage.ts";
import {
  type BucketSpan,
  type BucketsRequest,
  type KeySelection,
  selectionParameters,
  sinceOf,
  type UsageBuckets,
  usageBucketsFrom,
} from "./usage-buckets.ts";
import { sumsOf, type UsagePoint } from "./usage-sums.ts";

/** Which days of which keys. */
export interface DaysRequest {
  /** With today. */
  days: number;
  selection: KeySelection;
  /** Whether the days by key come with their costs. */
  withCosts?: boolean;
}

async function getUsageByDay(request: DaysRequest) {
  const body = await responseBody(api.usage["by-day"].get({ query: daysParameters(request) }));
  return {
    // A Map for the same reason as in `UsageBuckets`.
    lines: new Map(linesByDay(body.days).map((line) => [line.date, line])),
    today: body.today,
    rowCount: body.row_count,
    allTime: sumsOf(body.all_time),
    request,
    fetchedAt: serverNow(),
  };
}

export interface DayPage {
  lines: ReadonlyMap<string, DailyUsageLine>;
  /** The page continues with the day before this one; undefined after the last. */
  nextBefore: string | undefined;
  fetchedAt: number;
}

/** A page of the days by key, latest first. */
export async function getDayPage(request: DaysRequest, before?: string): Promise<DayPage> {
  const parameters = { ...daysParameters(request), ...(before !== undefined && { before }) };
  const body = await responseBody(api.usage["by-day-and-key"].get({ query: parameters }));
  const [last, first] = [body.rows.date[0], body.rows.date.at(-1)];
  const costs =
    request.withCosts === true && first !== undefined && last !== undefined
      ? await getLineCosts({ from: first, to: last }, request.selection)
      : undefined;
  const lines = linesByDayAndKey(body.rows, body.names, costs);
  return {
    lines: new Map(lines.map((line) => [`${line.date} ${line.key?.id}`, line])),
    nextBefore: body.next_before ?? undefined,
    fetchedAt: serverNow(),
  };
}

const daysParameters = ({
  days,
  selection,
}: DaysRequest): { days: number; key_id?: number; q?: string; hide?: string } => ({
  // The API's are before today.
  days: days - 1,
  ...selectionParameters(selection),
});

/** The fewest days that the API has. */
const fewestDays = 7;

/** The days of all keys, for a CSV. */
export async function getDailyUsage(days: number): Promise<DailyUsageRow[]> {
  const rows = await responseBody(api.usage.daily.get({ query: { days: Math.max(fewestDays, days - 1) } }));
  const { from } = lastDays(days);
  return rows.filter(({ date }) => date >= from);
}

/** The buckets of all keys, for a CSV. Wider than those of a chart if their minute counts were deleted meanwhile. */
export async function getUsagePoints(shown: BucketSpan): Promise<BucketSpan & { points: UsagePoint[] }> {
  const query = { ...spanParameters(shown.span), bucket_minutes: shown.bucketMinutes };
  const { from, to, bucket_minutes, points } = await responseBody(api.usage.points.get({ query }));
  return { span: { from: Date.parse(from), to: Date.parse(to) }, bucketMinutes: bucket_minutes, points };
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

export const useUsageByDayQuery = (request: () => DaysRequest, everyMs = 60_000): QueryResult<typeof getUsageByDay> =>
  useQuery(() => ({
    queryKey: ["usage", "by-day", request()],
    queryFn: () => getUsageByDay(request()),
    refetchInterval: refetchSoonerAfterError(everyMs),
    placeholderData: keepPreviousData,
  }));

/** The first page. */
export const useDayPageQuery = (
  request: () => DaysRequest,
  enabled: () => boolean,
): QueryResult<typeof getFirstDayPage> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["usage", "by-day-and-key", request()],
    queryFn: () => getFirstDayPage(request()),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));

const getFirstDayPage = async (request: DaysRequest) => ({ ...(await getDayPage(request)), request });

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

export type UsageGroup = "model" | "key" | "key_model";

interface ModelUsageQuery {
  days: number;
  by: UsageGroup;
  bucket: "none" | "hour" | "day";
  keyId: number | undefined;
}

async function getModelUsage({ days, by, bucket, keyId }: ModelUsageQuery) {
  const query = { days, by, bucket, ...(keyId === undefined ? {} : { key_id: keyId }) };
  return { ...(await responseBody(api.usage.models.get({ query }))), fetchedAt: serverNow() };
}
export type ModelUsage = Awaited<ReturnType<typeof getModelUsage>>;
export type ModelUsageRow = ModelUsage["rows"][number];

const getReconciliation = () => responseBody(api.reconciliation.get({ query: { days: 30 } }));
export type Reconciliation = Awaited<ReturnType<typeof getReconciliation>>;

export const useModelUsageQuery = (query: () => ModelUsageQuery): QueryResult<typeof getModelUsage> =>
  useQuery(() => ({
    queryKey: ["usage", "models", query()],
    queryFn: () => getModelUsage(query()),
    refetchInterval: 60_000,
    placeholderData: keepPreviousData,
  }));

export const useReconciliationQuery = (): QueryResult<typeof getReconciliation> =>
  useQuery(() => ({ queryKey: ["reconciliation"], queryFn: getReconciliation, refetchInterval: 60_000 }));
