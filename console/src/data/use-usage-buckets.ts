import { createComputed, createMemo, createSignal } from "solid-js";
import { createDrawnData } from "./drawn-data.ts";
import { useUsageHistoryQuery } from "./queries.ts";
import { minuteMs } from "./seoul-time.ts";
import { now } from "./server-clock.ts";
import {
  barStep,
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
  /** Of the data. */
  bucketMinutes: () => number;
  /** Of the bars in the chart. */
  barMinutes: () => number;
  span: () => TimeSpan;
  /** When the data were fetched, server time; undefined without data. */
  fetchedAt: () => number | undefined;
  /** Whether the chart shows the chosen time range in its buckets. */
  isCurrent: () => boolean;
  isLoading: () => boolean;
  /** Whether the chart has reported the width of its plot. */
  isMeasured: () => boolean;
  /** Loading starts once the chart has reported the width of its plot. */
  setPlotWidth: (widthPx: number) => void;
}

/** The usage history over a time range, in as many buckets as the chart has bars. */
export function useUsageBuckets(timeRange: () => TimeRange): UsageBuckets {
  // Not a signal: the number of keys affects only the next request.
  let keyCount = 0;
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const requested = createMemo(() => bucketQuery(timeRange(), now(), keyCount, plotWidthPx()), undefined, {
    equals: sameQuery,
  });
  const isMeasured = (): boolean => plotWidthPx() > 0;
  const query = useUsageHistoryQuery(requested, isMeasured);
  createComputed(() => (keyCount = query.data?.history.size ?? 0));
  const drawn = createDrawnData(() => query.data, timeRange, requested);
  const bucketMinutes = (): number => drawn()?.data.bucketMinutes ?? requested().bucketMinutes;
  const fetchedAt = (): number | undefined => drawn()?.data.fetchedAt;
  const span = createMemo(
    () => visibleSpan(drawn()?.timeRange ?? timeRange(), fetchedAt() ?? now(), bucketMinutes()),
    undefined,
    { equals: sameSpan },
  );
  const isCurrent = (): boolean => {
    const data = drawn()?.data;
    return data !== undefined && sameQuery(data, requested());
  };
  return {
    query,
    requested,
    history: () => drawn()?.data.history,
    bucketMinutes,
    barMinutes: () => barStep(span(), bucketMinutes() * minuteMs, plotWidthPx()) / minuteMs,
    span,
    fetchedAt,
    isCurrent,
    isLoading: () => !isCurrent() && !query.isError,
    isMeasured,
    setPlotWidth,
  };
}
