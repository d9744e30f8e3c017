import { createMemo } from "solid-js";
import { downloadCsv } from "./csv.ts";
import { bucketName } from "./format.ts";
import { type RankedKey, rankKeys } from "./key-ranking.ts";
import { seoulMinute } from "./seoul-time.ts";
import { addSums, sumsIn, usageHistoryCsv, type UsageSums } from "./usage-history.ts";
import { type TimeRangeState, useTimeRange } from "./use-time-range.ts";
import { type UsageBuckets, useUsageBuckets } from "./use-usage-buckets.ts";
import { isHidden, rankedIn } from "./usage-view.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

export interface UsageHistoryState extends TimeRangeState, UsageBuckets {
  /** All matching keys, highest total first; hidden ones too. */
  ranked: () => RankedKey[];
  /** Over the keys in the chart. */
  sums: () => UsageSums;
  exportCsv: () => void;
}

/** The usage history over the time range in the URL, filtered. */
export function useUsageHistory(filters: UsageFilters): UsageHistoryState {
  const timeRangeState = useTimeRange("24h");
  const buckets = useUsageBuckets(timeRangeState.chosen);
  const { span } = buckets;
  const ranked = createMemo<RankedKey[]>((before) => {
    const history = buckets.history() ?? new Map();
    return rankKeys(history, filters.metric(), span(), (key) => filters.matches(key.id, key.name), before);
  }, []);
  const drawn = createMemo(() => rankedIn(filters.view(), ranked()));
  const shown = createMemo(() => drawn().flatMap((one) => (isHidden(one, filters.hiddenIds()) ? [] : [one.key])));
  const sums = createMemo(() => addSums(shown().map((key) => sumsIn(key, span()))));
  const csvName = (): string =>
    `usage-${bucketName(buckets.bucketMinutes())}-${seoulMinute(span().from)}-to-${seoulMinute(span().to)}-KST.csv`;
  return {
    ...timeRangeState,
    ...buckets,
    ranked: drawn,
    sums,
    exportCsv: () => downloadCsv(csvName().replaceAll(":", ""), usageHistoryCsv(shown(), span())),
  };
}
