import { useQuery } from "@tanstack/solid-query";
import { api, responseBody } from "../client.ts";
import { serverNow } from "../lib/server-clock.ts";
import { keepPreviousData, type QueryResult, refetchSoonerAfterError } from "../queries.ts";
import { powerHistoryFrom } from "./energy.ts";
import { gpuHistoryFrom, type HistoryRequest } from "./gpu-history.ts";

const getGpus = () => responseBody(api["gpu-stats"].get());
export type Gpu = Awaited<ReturnType<typeof getGpus>>[number];

async function getPowerHistory(request: HistoryRequest) {
  const { points } = await responseBody(api["gpu-stats"].history.get({ query: parametersOf(request) }));
  return { power: powerHistoryFrom(points), request, fetchedAt: serverNow() };
}

async function getGpuHistory(gpuId: number | undefined, request: HistoryRequest) {
  const { points } = await responseBody(
    api["gpu-stats"].history.get({
      query: { ...parametersOf(request), ...(gpuId !== undefined && { gpu_id: gpuId }) },
    }),
  );
  return { history: gpuHistoryFrom(points), request, fetchedAt: serverNow() };
}

export type PowerHistoryData = Awaited<ReturnType<typeof getPowerHistory>>;
export type GpuHistoryData = Awaited<ReturnType<typeof getGpuHistory>>;

const parametersOf = ({ days, bucketMinutes }: HistoryRequest): { days: number; bucket_minutes: number } => ({
  days,
  bucket_minutes: bucketMinutes,
});

export const useGpusQuery = (): QueryResult<typeof getGpus> =>
  useQuery(() => ({ queryKey: ["gpus"], queryFn: getGpus, refetchInterval: 2000, reconcile: "gpu_id" }));

export const usePowerHistoryQuery = (
  request: () => HistoryRequest,
  enabled: () => boolean,
): QueryResult<typeof getPowerHistory> =>
  useQuery(() => ({
    enabled: enabled(),
    queryKey: ["power", request()],
    queryFn: () => getPowerHistory(request()),
    refetchInterval: refetchSoonerAfterError(refetchIntervalMs(request())),
    placeholderData: keepPreviousData,
  }));

export const useGpuHistoryQuery = (
  gpuId: () => number | undefined,
  request: () => HistoryRequest,
  enabled: () => boolean,
): QueryResult<typeof getGpuHistory> =>
  useQuery(() => ({
    enabled: enabled() && gpuId() !== undefined,
    queryKey: ["gpu-history", gpuId(), request()],
    queryFn: () => getGpuHistory(gpuId(), request()),
    refetchInterval: refetchSoonerAfterError(refetchIntervalMs(request())),
    // Not that of another GPU.
    placeholderData: (previous, previousQuery) => (previousQuery?.queryKey[1] === gpuId() ? previous : undefined),
  }));

const refetchIntervalMs = ({ days }: HistoryRequest): number => (days <= 1 ? 15_000 : 60_000);
