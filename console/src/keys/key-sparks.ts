import type { UseQueryResult } from "@tanstack/solid-query";
import type { Key } from "../queries.ts";
import { useUsageBucketsQuery } from "../usage/queries.ts";
import { everyKey, type UsageBuckets } from "../usage/usage-buckets.ts";

const sparksRequest = {
  ...everyKey,
  timeRange: { preset: "24h", zoom: undefined },
  bucketMinutes: 60,
  metric: "total",
  // The API draws no more than these; the table has the names.
  top: 1000,
  list: 0,
} as const;

/** The tokens of all keys in each of the last 24 hours, in one request. */
export const useKeySparksQuery = (enabled: () => boolean): UseQueryResult<UsageBuckets> =>
  useUsageBucketsQuery(() => sparksRequest, 1, enabled);

/** Undefined while they load, and for a key without usage. */
export const sparkOf = (buckets: UsageBuckets | undefined, { id }: Key): Float64Array | undefined =>
  buckets?.series.get(id);
