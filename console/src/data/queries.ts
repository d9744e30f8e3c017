import { QueryClient, useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { ApiError, api, bodyOf } from "../client.ts";
import { rowsByDay } from "./daily-usage.ts";
import { historyFrom } from "./usage-history.ts";
import { serverNow } from "./server-clock.ts";
import type { BucketQuery } from "./time-range.ts";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      // A refusal stays one however often it is asked; a lost answer is worth one more try before a bar says so.
      retry: (failures, error) => failures < 1 && error instanceof ApiError && error.status === 0,
      retryDelay: 500,
      staleTime: 5000,
      // On a loopback or an office LAN the browser's idea of being online means nothing.
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

type Answered<Call extends (...parameters: never[]) => Promise<unknown>> = UseQueryResult<Awaited<ReturnType<Call>>>;

const getOverview = () => bodyOf(api.overview.get());
const getKeys = () => bodyOf(api.keys.get());
const getSummary = () => bodyOf(api.usage.summary.get());
const getTotal = () => bodyOf(api.usage.total.get());
const getGpus = () => bodyOf(api["gpu-stats"].get());

export type Overview = Awaited<ReturnType<typeof getOverview>>;
export type Key = Awaited<ReturnType<typeof getKeys>>[number];
export type Gpu = Awaited<ReturnType<typeof getGpus>>[number];

async function getDaily(days: number) {
  return { byDay: rowsByDay(await bodyOf(api.usage.daily.get({ query: { days } }))) };
}

async function getHistory({ days, bucketMinutes }: BucketQuery) {
  const { points } = await bodyOf(api.usage.history.get({ query: { days, bucket_minutes: bucketMinutes } }));
  return { history: historyFrom(points), bucketMinutes, at: serverNow() };
}

async function getPower({ days, bucketMinutes }: BucketQuery) {
  const body = await bodyOf(api["gpu-stats"]["power-history"].get({ query: { days, bucket_minutes: bucketMinutes } }));
  const watts = new Map(body.points.map((point) => [Date.parse(point.recorded_at), point.power_draw_w]));
  return { watts, bucketMinutes, at: serverNow() };
}

// Polling stops by itself in hidden tabs (`refetchIntervalInBackground` is off). `reconcile` keeps the rows that did
// not change, so that a refresh neither takes the focus nor closes what is open.

export const useOverview = (): Answered<typeof getOverview> =>
  useQuery(() => ({ queryKey: ["overview"], queryFn: getOverview, refetchInterval: 5000, reconcile: "gpu_id" }));

export const useKeys = (): Answered<typeof getKeys> =>
  useQuery(() => ({ queryKey: ["keys"], queryFn: getKeys, refetchInterval: 15_000, reconcile: "id" }));

export const useSummary = (): Answered<typeof getSummary> =>
  useQuery(() => ({ queryKey: ["usage", "summary"], queryFn: getSummary, refetchInterval: 15_000 }));

export const useTotal = (): Answered<typeof getTotal> =>
  useQuery(() => ({ queryKey: ["usage", "total"], queryFn: getTotal, refetchInterval: 15_000 }));

export const useDaily = (days: () => number): Answered<typeof getDaily> =>
  useQuery(() => ({
    queryKey: ["usage", "daily", days()],
    queryFn: () => getDaily(days()),
    refetchInterval: refreshedEvery(60_000),
    placeholderData: keepPrevious,
  }));

export const useHistory = (query: () => BucketQuery): Answered<typeof getHistory> =>
  useQuery(() => ({
    queryKey: ["usage", "history", query()],
    queryFn: () => getHistory(query()),
    refetchInterval: refreshedEvery(refreshEvery(query())),
    placeholderData: keepPrevious,
  }));

export const useGpus = (): Answered<typeof getGpus> =>
  useQuery(() => ({ queryKey: ["gpus"], queryFn: getGpus, refetchInterval: 2000, reconcile: "gpu_id" }));

export const usePower = (query: () => BucketQuery): Answered<typeof getPower> =>
  useQuery(() => ({
    queryKey: ["power", query()],
    queryFn: () => getPower(query()),
    refetchInterval: refreshedEvery(refreshEvery(query())),
    placeholderData: keepPrevious,
  }));

/** What is shown stays until what was asked for has come. */
const keepPrevious = <T>(previous: T | undefined): T | undefined => previous;

/** What failed is asked for again sooner: until it comes, the page says that something is wrong. */
const refreshedEvery =
  (everyMs: number) =>
  ({ state }: { state: { status: string } }): number =>
    state.status === "error" ? 15_000 : everyMs;

const refreshEvery = ({ days }: BucketQuery): number => (days <= 1 ? 15_000 : 60_000);
