import { createComputed, createMemo } from "solid-js";
import { useUsageHistoryQuery } from "./queries.ts";
import { now } from "./server-clock.ts";
import {
  type BucketQuery,
  bucketQuery,
  sameQuery,
  sameSpan,
  type TimeRange,
  type TimeSpan,
  visibleSpan,
} from "./time-range.ts";
import type { UsageHistory } from "./usage-history.ts";

export interface UsageBuckets {
  query: ReturnType<typeof useUsageHistoryQuery>;
  /** The requested days and bucket width; while new data loads, the chart still shows the old ones. */
  requested: () => BucketQuery;
  /** Undefined until the first response. */
  history: () => UsageHistory | undefined;
  /** Of the buckets on the screen. */
  bucketMinutes: () => number;
  span: () => TimeSpan;
  isLoading: () => boolean;
}

/** The usage history over a time range, in buckets whose width fits it. */
export function useUsageBuckets(timeRange: () => TimeRange): UsageBuckets {
  // Not a signal: the number of keys affects only the next request.
  let keyCount = 0;
  const requested = createMemo(() => bucketQuery(timeRange(), now(), keyCount), undefined, { equals: sameQuery });
  const query = useUsageHistoryQuery(requested);
  createComputed(() => (keyCount = query.data?.history.size ?? 0));
  const bucketMinutes = (): number => query.data?.bucketMinutes ?? requested().bucketMinutes;
  const span = createMemo(() => visibleSpan(timeRange(), query.data?.fetchedAt ?? now(), bucketMinutes()), undefined, {
    equals: sameSpan,
  });
  return {
    query,
    requested,
    history: () => query.data?.history,
    bucketMinutes,
    span,
    isLoading: () => query.isPlaceholderData || query.data === undefined,
  };
}
