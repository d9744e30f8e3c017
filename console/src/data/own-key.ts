import { useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { type api, requestWithKey } from "../client.ts";

/** What `GET /api/own-key` tells the holder of a key. */
export type OwnKey = NonNullable<Awaited<ReturnType<(typeof api)["own-key"]["get"]>>["data"]>;

/** @param key undefined: nothing is requested. It stays in memory: the query's name does not contain it */
export const useOwnKeyQuery = (key: () => string | undefined): UseQueryResult<OwnKey> =>
  useQuery(() => ({
    enabled: key() !== undefined,
    queryKey: ["own-key"],
    queryFn: () => requestWithKey<OwnKey>("/api/own-key", key() ?? ""),
    refetchInterval: 10_000,
    gcTime: 0,
    staleTime: 0,
  }));
