import { useQuery, type UseQueryResult } from "@tanstack/solid-query";
import { requestWithKey } from "../client.ts";
import type { LimitedKey, LimitName } from "./key-limits.ts";

interface Sums {
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

/** What `GET /v1/tollgate/key` tells the holder of a key. */
export interface OwnKey extends LimitedKey {
  name: string;
  expires_at: string | null;
  allowed_models: string[] | null;
  resets: Partial<Record<LimitName, string | null>>;
  refused_today: number;
  today: Sums;
  this_month: Sums;
  daily: (Sums & { date: string })[];
}

/** @param key undefined: nothing is requested. It stays in memory: the query's name does not contain it */
export const useOwnKeyQuery = (key: () => string | undefined): UseQueryResult<OwnKey> =>
  useQuery(() => ({
    enabled: key() !== undefined,
    queryKey: ["own-key"],
    queryFn: () => requestWithKey<OwnKey>("/v1/tollgate/key", key() ?? ""),
    refetchInterval: 10_000,
    gcTime: 0,
    staleTime: 0,
  }));
