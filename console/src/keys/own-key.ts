import { useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { type api, ApiError, requestWithKey } from "../client.ts";

/** What `GET /api/own-key` tells the holder of a key. */
export type OwnKey = NonNullable<Awaited<ReturnType<(typeof api)["own-key"]["get"]>>["data"]>;

/** Whether the server does not accept the key, or no longer. */
export const isRefused = (error: Error | null): boolean => error instanceof ApiError && error.status === 401;

/** A key as it was entered. It stays in memory: queries are named by the attempt. */
export interface EnteredKey {
  key: string;
  /** Another one for each entry, so that no data of the key before is shown. */
  attempt: number;
}

/** @param entered undefined: nothing is requested */
export const useOwnKeyQuery = (entered: () => EnteredKey | undefined): UseQueryResult<OwnKey> =>
  useQuery(() => ({
    enabled: entered() !== undefined,
    queryKey: ["own-key", entered()?.attempt],
    queryFn: () => requestWithKey<OwnKey>("/api/own-key", entered()?.key ?? ""),
    // A key that is refused stays refused.
    refetchInterval: ({ state }) => (isRefused(state.error) ? false : 10_000),
    gcTime: 0,
    staleTime: 0,
  }));
