import { QueryClient, useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { api, ApiError, responseBody } from "../client.ts";
import { rowsByDay } from "./daily-usage.ts";
import { powerHistoryFrom } from "./energy.ts";
import { gpuHistoryFrom } from "./gpu-history.ts";
import { serverNow } from "./server-clock.ts";
import type { BucketQuery } from "./time-range.ts";
import { usageHistoryFrom } from "./usage-history.ts";

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

type QueryResult<Call extends (...parameters: never[]) => Promise<unknown>> = UseQueryResult<Awaited<ReturnType<Call>>>;

const getOverview = () => responseBody(api.overview.get());
const getKeys = () => responseBody(api.keys.get());
const getUsageSummary = () => responseBody(api.usage.summary.get());
const getUsageTotal = () => responseBody(api.usage.total.get());
const getGpus = () => responseBody(api["gpu-stats"].get());

export type Overview = Awaited<ReturnType<typeof getOverview>>;
export type Key = Awaited<ReturnType<typeof getKeys>>[number];
export type UsageHistoryData = Awaited<ReturnType<typeof getUsageHistory>>;
export type PowerHistoryData = Awaited<ReturnType<typeof getPowerHistory>>;
export type GpuHistoryData = Awaited<ReturnType<typeof getGpuHistory>>;
export type Gpu = Awaited<ReturnType<typeof getGpus>>[number];

async function getDailyUsage(days: number) {
  return {
    byDay: rowsByDay(await responseBody(api.usage.daily.get({ query: { days } }))),
    days,
    fetchedAt: serverNow(),
  };
}

async function getUsageHistory({ days, bucketMinutes }: BucketQuery) {
  const { points } = await responseBody(api.usage.history.get({ query: { days, bucket_minutes: bucketMinutes } }));
  return { history: usageHistoryFrom(points), days, bucketMinutes, fetchedAt: serverNow() };
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

export const useKeysQuery = (): QueryResult<typeof getKeys> =>
  useQuery(() => ({ queryKey: ["keys"], queryFn: getKeys, refetchInterval: 15_000, reconcile: "id" }));

export const useUsageSummaryQuery = (): QueryResult<typeof getUsageSummary> =>
  useQuery(() => ({ queryKey: ["usage", "summary"], queryFn: getUsageSummary, refetchInterval: 15_000 }));

export const useUsageTotalQuery = (): QueryResult<typeof getUsageTotal> =>
  useQuery(() => ({ queryKey: ["usage", "total"], queryFn: getUsageTotal, refetchInterval: 15_000 }));

export const useDailyUsageQuery = (
  days: () => number,
  enabled: () => boolean = () => true,
): QueryResult<typeof getDailyUsage> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["usage", "daily", days()],
    queryFn: () => getDailyUsage(days()),
    refetchInterval: refetchSoonerAfterError(60_000),
    placeholderData: keepPreviousData,
  }));

export const useUsageHistoryQuery = (
  query: () => BucketQuery,
  enabled: () => boolean,
): QueryResult<typeof getUsageHistory> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["usage", "history", query()],
    queryFn: () => getUsageHistory(query()),
    refetchInterval: refetchSoonerAfterError(refetchIntervalMs(query())),
    placeholderData: keepPreviousData,
  }));

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

const refetchIntervalMs = ({ days }: BucketQuery): number => (days <= 1 ? 15_000 : 60_000);
