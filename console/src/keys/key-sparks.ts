import type { UseQueryResult } from "@tanstack/solid-query";
import { type Key, useUsageChartQuery } from "../queries.ts";
import { everyKey, type UsageChartData } from "../usage/usage-buckets.ts";

const request = {
  ...everyKey,
  timeRange: { preset: "24h", zoom: undefined },
  bucketMinutes: 60,
  metric: "total",
  // As many as the API draws; no names, which the table has.
  top: 1000,
  list: 0,
} as const;

/** The tokens of all keys in each of the last 24 hours, in one request. */
export const useKeySparksQuery = (enabled: () => boolean): UseQueryResult<UsageChartData> =>
  useUsageChartQuery(() => request, 1, enabled);

/** Undefined while they load, and for a key without usage. */
export const sparkOf = (chart: UsageChartData | undefined, { id }: Key): Float64Array | undefined =>
  chart?.series.get(id);
