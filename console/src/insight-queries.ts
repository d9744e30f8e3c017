import { useMutation, type UseMutationResult, useQuery, useQueryClient } from "@tanstack/solid-query";
import { api, responseBody } from "./client.ts";
import type { QueryResult } from "./queries.ts";
import { serverNow } from "./lib/server-clock.ts";
import { showToast } from "./lib/toasts.ts";

export type UsageGroup = "model" | "key" | "key_model";

export interface ModelUsageQuery {
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

async function getLatency(hours: number, bucketMinutes: number) {
  const query = { hours, bucket_minutes: bucketMinutes, by: "all" as const };
  return { ...(await responseBody(api.latency.get({ query }))), fetchedAt: serverNow() };
}
export type Latency = Awaited<ReturnType<typeof getLatency>>;

async function getFailures(hours: number, bucketMinutes: number, keyId: number | undefined) {
  const query = { hours, bucket_minutes: bucketMinutes, ...(keyId === undefined ? {} : { key_id: keyId }) };
  return { ...(await responseBody(api.failures.get({ query }))), fetchedAt: serverNow() };
}
export type Failures = Awaited<ReturnType<typeof getFailures>>;

const getLastRequests = (query: { failed?: "true"; key_id?: number; limit: number }) =>
  responseBody(api.requests.get({ query }));

const getTokenless = (hours: number) => responseBody(api.usage["without-tokens"].get({ query: { hours } }));
export type Tokenless = Awaited<ReturnType<typeof getTokenless>>;

const getReconciliation = () => responseBody(api.reconciliation.get({ query: { days: 30 } }));
export type Reconciliation = Awaited<ReturnType<typeof getReconciliation>>;

const getPrices = () => responseBody(api.prices.get());
export type Prices = Awaited<ReturnType<typeof getPrices>>;

const getSettings = () => responseBody(api.settings.get());
export type Settings = Awaited<ReturnType<typeof getSettings>>;

const getSessions = () => responseBody(api.sessions.get());
export type ConsoleSession = Awaited<ReturnType<typeof getSessions>>[number];

const keepPreviousData = <T>(previous: T | undefined): T | undefined => previous;

export const useModelUsageQuery = (
  query: () => ModelUsageQuery,
  enabled = (): boolean => true,
): QueryResult<typeof getModelUsage> =>
  useQuery(() => ({
    queryKey: ["usage", "models", query()],
    queryFn: () => getModelUsage(query()),
    enabled: enabled(),
    refetchInterval: 60_000,
    placeholderData: keepPreviousData,
  }));

export const useLatencyQuery = (hours: () => number, bucketMinutes: () => number): QueryResult<typeof getLatency> =>
  useQuery(() => ({
    queryKey: ["latency", hours(), bucketMinutes()],
    queryFn: () => getLatency(hours(), bucketMinutes()),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  }));

export const useFailuresQuery = (
  hours: () => number,
  bucketMinutes: () => number,
  keyId: () => number | undefined,
): QueryResult<typeof getFailures> =>
  useQuery(() => ({
    queryKey: ["failures", hours(), bucketMinutes(), keyId()],
    queryFn: () => getFailures(hours(), bucketMinutes(), keyId()),
    refetchInterval: 30_000,
    placeholderData: keepPreviousData,
  }));

/** The last failures of all keys or of one. */
export const useLastFailuresQuery = (keyId: () => number | undefined): QueryResult<typeof getLastRequests> =>
  useQuery(() => ({
    queryKey: ["requests", "failed", keyId()],
    queryFn: () => getLastRequests({ failed: "true", limit: 6, ...ofKey(keyId()) }),
    refetchInterval: 15_000,
  }));

/** The last requests of a key, for its latency. */
export const useKeyRequestsQuery = (keyId: () => number): QueryResult<typeof getLastRequests> =>
  useQuery(() => ({
    queryKey: ["requests", "of-key", keyId()],
    queryFn: () => getLastRequests({ key_id: keyId(), limit: 200 }),
    refetchInterval: 30_000,
  }));

const ofKey = (keyId: number | undefined): { key_id?: number } => (keyId === undefined ? {} : { key_id: keyId });

export const useTokenlessQuery = (hours: number): QueryResult<typeof getTokenless> =>
  useQuery(() => ({
    queryKey: ["usage", "without-tokens", hours],
    queryFn: () => getTokenless(hours),
    refetchInterval: 60_000,
  }));

export const useReconciliationQuery = (): QueryResult<typeof getReconciliation> =>
  useQuery(() => ({ queryKey: ["reconciliation"], queryFn: getReconciliation, refetchInterval: 60_000 }));

export const usePricesQuery = (): QueryResult<typeof getPrices> =>
  useQuery(() => ({ queryKey: ["prices"], queryFn: getPrices }));

/** For a form: loads the prices anew although the cache has some. */
export const usePricesToEditQuery = (): QueryResult<typeof getPrices> =>
  useQuery(() => ({ queryKey: ["prices"], queryFn: getPrices, refetchOnMount: "always" }));

export function useSavePrices(): UseMutationResult<Prices, Error, Prices> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: (prices: Prices) => responseBody(api.prices.put(prices)),
    onSuccess: (saved) => {
      queries.setQueryData(["prices"], saved);
      showToast("The prices were saved");
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["usage"] }),
  }));
}

export const useSettingsQuery = (): QueryResult<typeof getSettings> =>
  useQuery(() => ({ queryKey: ["settings"], queryFn: getSettings }));

export const useSessionsQuery = (): QueryResult<typeof getSessions> =>
  useQuery(() => ({ queryKey: ["sessions"], queryFn: getSessions, refetchInterval: 30_000, reconcile: "id" }));

export function useEndSession(): UseMutationResult<unknown, Error, string | undefined> {
  const queries = useQueryClient();
  return useMutation(() => ({
    /** Undefined: all but the current one. */
    mutationFn: async (id: string | undefined): Promise<unknown> =>
      id === undefined ? responseBody(api.sessions.delete()) : responseBody(api.sessions({ id }).delete()),
    onSuccess: (_, id) => showToast(id === undefined ? "All other sessions were ended" : "The session was ended"),
    onError: (error) => showToast(`Not ended: ${error.message}`, "error"),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  }));
}

export function useChangePassword(): UseMutationResult<unknown, Error, { current: string; next: string }> {
  const queries = useQueryClient();
  return useMutation(() => ({
    mutationFn: ({ current, next }: { current: string; next: string }) =>
      responseBody(api.password.post({ current_password: current, new_password: next })),
    onSuccess: () => showToast("The password was changed, and all other sessions were ended"),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sessions"] }),
  }));
}

const explain = ({ path, body }: { path: string; body: string }) => responseBody(api.explain.post({ path, body }));
export type Explanation = Awaited<ReturnType<typeof explain>>;

export const useExplain = (): UseMutationResult<Explanation, Error, { path: string; body: string }> =>
  useMutation(() => ({ mutationFn: explain }));
