import { QueryClient, useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { api, ApiError, responseBody } from "./client.ts";
import { type DailyUsageLine, type DailyUsageRow, linesByDay, linesByDayAndKey } from "./usage/daily-usage.ts";
import { powerHistoryFrom } from "./gpus/energy.ts";
import { gpuHistoryFrom } from "./gpus/gpu-history.ts";
import { dayMs, minuteMs } from "./lib/seoul-time.ts";
import { serverNow } from "./lib/server-clock.ts";
import { type BucketQuery, chosenSpan, type TimeSpan } from "./lib/time-range.ts";
import {
  type BucketSpan,
  type ChartRequest,
  type KeySelection,
  selectionParameters,
  sinceOf,
  type UsageChartData,
  usageChartFrom,
} from "./usage/usage-buckets.ts";
import { sumsOf, type UsagePoint } from "./usage/usage-sums.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // An error response does not change on a retry. Without a response, try once more before the page reports it.
      retry: (failures, error) => failures < 1 && error instanceof ApiError && error.status === 0,
      retryDelay: 500,
      staleTime: 5000,
      // On loopback or a LAN, the browser's online state says nothing about the server.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

export type QueryResult<Call extends (...parameters: never[]) => Promise<unknown>> = UseQueryResult<
  Awaited<ReturnType<Call>>
>;

const getOverview = () => responseBody(api.overview.get());
const getKeys = () => responseBody(api.keys.get());
const getGpus = () => responseBody(api["gpu-stats"].get());

export type Overview = Awaited<ReturnType<typeof getOverview>>;
export type Key = Awaited<ReturnType<typeof getKeys>>[number];
export type PowerHistoryData = Awaited<ReturnType<typeof getPowerHistory>>;
export type GpuHistoryData = Awaited<ReturnType<typeof getGpuHistory>>;
export type Gpu = Awaited<ReturnType<typeof getGpus>>[number];

async function getUsageByDay(days: number, selection: KeySelection) {
  const body = await responseBody(api.usage["by-day"].get({ query: { days, ...selectionParameters(selection) } }));
  return {
    // A Map for the same reason as in `UsageChartData`.
    lines: new Map(linesByDay(body.days).map((line) => [line.date, line])),
    today: body.today,
    rowCount: body.row_count,
    allTime: sumsOf(body.all_time),
    days,
    selection,
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
export async function getDayPage(days: number, selection: KeySelection, before?: string): Promise<DayPage> {
  const parameters = { days, ...selectionParameters(selection), ...(before !== undefined && { before }) };
  const body = await responseBody(api.usage["by-day-and-key"].get({ query: parameters }));
  const lines = linesByDayAndKey(body.rows, body.names);
  return {
    lines: new Map(lines.map((line) => [`${line.date} ${line.key?.id}`, line])),
    nextBefore: body.next_before ?? undefined,
    fetchedAt: serverNow(),
  };
}

/** The days of all keys, for a CSV. */
export const getDailyUsage = (days: number): Promise<DailyUsageRow[]> =>
  responseBody(api.usage.daily.get({ query: { days } }));

/** The buckets of all keys, for a CSV. Wider than those of a chart if their minute counts were deleted meanwhile. */
export async function getUsagePoints(chart: BucketSpan): Promise<BucketSpan & { points: UsagePoint[] }> {
  const query = { ...spanParameters(chart.span), bucket_minutes: chart.bucketMinutes };
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
async function getUsageChart(
  request: ChartRequest,
  span: TimeSpan,
  before: UsageChartData | undefined,
): Promise<UsageChartData> {
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
  if (since === undefined) return usageChartFrom(body, request, serverNow());
  // Buckets of another width do not continue those from before.
  if (body.bucket_minutes !== before?.bucketMinutes) return getUsageChart(request, span, undefined);
  return usageChartFrom(body, request, serverNow(), before);
}

async function getPowerHistory({ days, bucketMinutes }: BucketQuery) {
  const { points } = await responseBody(
    api["gpu-stats"].history.get({ query: { days, bucket_minutes: bucketMinutes } }),
  );
  return { power: powerHistoryFrom(points), days, bucketMinutes, fetchedAt: serverNow() };
}

async function getGpuHistory(gpuId: number | undefined, { days, bucketMinutes }: BucketQuery) {
  const { points } = await responseBody(
    api["gpu-stats"].history.get({
      query: { days, bucket_minutes: bucketMinutes, ...(gpuId !== undefined && { gpu_id: gpuId }) },
    }),
  );
  return { history: gpuHistoryFrom(points), days, bucketMinutes, fetchedAt: serverNow() };
}

// Polling stops in hidden tabs (`refetchIntervalInBackground` is off). `reconcile` keeps the rows that did not change,
// so that a refresh does not move the focus or close an open dialog.

export const useOverviewQuery = (enabled: () => boolean = () => true): QueryResult<typeof getOverview> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["overview"],
    queryFn: getOverview,
    refetchInterval: 5000,
    reconcile: "gpu_id",
  }));

export const useKeysQuery = (enabled: () => boolean = () => true): QueryResult<typeof getKeys> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["keys"],
    queryFn: getKeys,
    refetchInterval: 15_000,
    reconcile: "id",
  }));

export const useUsageByDayQuery = (
  days: () => number,
  selection: () => KeySelection,
  everyMs = 60_000,
): QueryResult<typeof getUsageByDay> =>
  useQuery(() => ({
    queryKey: ["usage", "by-day", days(), selection()],
    queryFn: () => getUsageByDay(days(), selection()),
    refetchInterval: refetchSoonerAfterError(everyMs),
    placeholderData: keepPreviousData,
  }));

/** The first page. */
export const useDayPageQuery = (
  days: () => number,
  selection: () => KeySelection,
  enabled: () => boolean,
): QueryResult<typeof getFirstDayPage> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["usage", "by-day-and-key", days(), selection()],
    queryFn: () => getFirstDayPage(days(), selection()),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));

const getFirstDayPage = async (days: number, selection: KeySelection) => ({
  ...(await getDayPage(days, selection)),
  days,
  selection,
});

export const useUsageChartQuery = (
  request: () => ChartRequest,
  days: number,
  enabled: () => boolean,
): QueryResult<typeof getUsageChart> =>
  useQuery(() => {
    const queryKey = ["usage", "chart", request()];
    return {
      enabled: enabled(),
      queryKey,
      queryFn: () => {
        const span = chosenSpan(request().timeRange, serverNow(), days);
        return getUsageChart(request(), span, queryClient.getQueryData(queryKey));
      },
      refetchInterval: refetchSoonerAfterError(refetchChartMs(request(), days)),
      placeholderData: keepPreviousData,
    };
  });

/** A span that does not move. */
export const useFixedChartQuery = (
  wanted: () => { request: ChartRequest; span: TimeSpan } | undefined,
): QueryResult<typeof getUsageChart> =>
  useQuery(() => {
    const found = wanted();
    return {
      enabled: found !== undefined,
      queryKey: ["usage", "before", found],
      queryFn: () => {
        if (found === undefined) throw new Error("No span was requested");
        return getUsageChart(found.request, found.span, undefined);
      },
      placeholderData: keepPreviousData,
    };
  });

export const useGpusQuery = (): QueryResult<typeof getGpus> =>
  useQuery(() => ({ queryKey: ["gpus"], queryFn: getGpus, refetchInterval: 2000, reconcile: "gpu_id" }));

export const usePowerHistoryQuery = (
  query: () => BucketQuery,
  enabled: () => boolean,
): QueryResult<typeof getPowerHistory> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["power", query()],
    queryFn: () => getPowerHistory(query()),
    refetchInterval: refetchSoonerAfterError(refetchIntervalMs(query())),
    placeholderData: keepPreviousData,
  }));

export const useGpuHistoryQuery = (
  gpuId: () => number | undefined,
  query: () => BucketQuery,
  enabled: () => boolean,
): QueryResult<typeof getGpuHistory> =>
  useQuery(() => ({
    enabled: enabled() && gpuId() !== undefined,
    queryKey: ["gpu-history", gpuId(), query()],
    queryFn: () => getGpuHistory(gpuId(), query()),
    refetchInterval: refetchSoonerAfterError(refetchIntervalMs(query())),
    // Not that of another GPU.
    placeholderData: (previous, previousQuery) => (previousQuery?.queryKey[1] === gpuId() ? previous : undefined),
  }));

/** Keeps the old data on the screen until the new data arrives. */
const keepPreviousData = <T>(previous: T | undefined): T | undefined => previous;

/** The page shows an error until a query succeeds again, so a failed one is retried sooner. */
const refetchSoonerAfterError =
  (everyMs: number) =>
  ({ state }: { state: { status: string } }): number =>
    state.status === "error" ? 15_000 : everyMs;

const refetchChartMs = ({ timeRange }: ChartRequest, days: number): number => {
  const { from, to } = chosenSpan(timeRange, serverNow(), days);
  return to - from <= dayMs + minuteMs ? 15_000 : 60_000;
};

const refetchIntervalMs = ({ days }: BucketQuery): number => (days <= 1 ? 15_000 : 60_000);
