import { useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { type api, ApiError, requestWithKey } from "../client.ts";

/** What `GET /api/own-key` tells the holder of a key. */
export type OwnKey = NonNullable<Awaited<ReturnType<(typeof api)["own-key"]["get"]>>["data"]>;

/** Whether the server does not accept the key, or no longer. */
export const isRefused = (error: Error | null): boolean => error instanceof ApiError && error.status === 401;

/** @param key undefined: nothing is requested. It stays in memory: the query's name does not contain it */
export const useOwnKeyQuery = (key: () => string | undefined): UseQueryResult<OwnKey> =>
  useQuery(() => ({
    enabled: key() !== undefined,
    queryKey: ["own-key"],
    queryFn: () => requestWithKey<OwnKey>("/api/own-key", key() ?? ""),
    // A key that is refused stays refused.
    refetchInterval: ({ state }) => (isRefused(state.error) ? false : 10_000),
    gcTime: 0,
    staleTime: 0,
  }));
