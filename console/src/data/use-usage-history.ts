import { useSearchParams } from "@solidjs/router";
import type { UseQueryResult } from "@tanstack/solid-query";
import { createMemo } from "solid-js";
import { downloadCsv } from "./csv.ts";
import { bucketName } from "./format.ts";
import { addSums, usageHistoryCsv, isUsageMetric, type UsageMetric, type UsageSums, sumsIn } from "./usage-history.ts";
import { now } from "./server-clock.ts";
import { useTimeRange, type TimeRangeState } from "./use-time-range.ts";
import { type RankedKey, rankKeys } from "./key-ranking.ts";
import { useUsageHistoryQuery } from "./queries.ts";
import { seoulMinute } from "./seoul-time.ts";
import { bucketQuery, sameQuery, sameSpan, type TimeSpan, visibleSpan } from "./time-range.ts";

/** What the usage page is asked to show: all of it lives in the address. */
export interface UsageFilters {
  metric: () => UsageMetric;
  search: () => string;
  /** Undefined: all keys. */
  keyId: () => number | undefined;
  hiddenIds: () => ReadonlySet<number>;
  matches: (id: number, name: string) => boolean;
  isFiltered: () => boolean;
  setMetric: (metric: UsageMetric) => void;
  setSearch: (search: string) => void;
  setHiddenIds: (ids: ReadonlySet<number>) => void;
  showAllKeys: () => void;
  clear: () => void;
}

export function useUsageFilters(): UsageFilters {
  const [parameters, setParameters] = useSearchParams<{ metric?: string; q?: string; key?: string; hide?: string }>();
  const hiddenIds = createMemo(() => new Set((parameters.hide ?? "").split(",").filter(Boolean).map(Number)));
  const search = (): string => parameters.q ?? "";
  const keyId = (): number | undefined => (parameters.key === undefined ? undefined : Number(parameters.key));
  // Typing leaves no trail in the history: Back leads to the page before, not to the letter before.
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    metric: () => (isUsageMetric(parameters.metric) ? parameters.metric : "output"),
    search,
    keyId,
    hiddenIds,
    matches: (id, name) =>
      (keyId() === undefined || id === keyId()) && name.toLowerCase().includes(search().trim().toLowerCase()),
    isFiltered: () => search() !== "" || keyId() !== undefined,
    setMetric: (metric) => replace({ metric: metric === "output" ? undefined : metric }),
    setSearch: (typed) => replace({ q: typed }),
    setHiddenIds: (ids) => replace({ hide: [...ids].toSorted((a, b) => a - b).join(",") }),
    showAllKeys: () => setParameters({ key: undefined }),
    clear: () => replace({ q: undefined, key: undefined, hide: undefined }),
  };
}

export interface UsageHistoryState extends TimeRangeState {
  query: UseQueryResult<{ history: ReadonlyMap<number, { name: string }> }>;
  bucketMinutes: () => number;
  span: () => TimeSpan;
  /** All that match the filter, most used first; hidden ones too. */
  ranked: () => RankedKey[];
  /** Over what is shown. */
  sums: () => UsageSums;
  isLoading: () => boolean;
  exportCsv: () => void;
}

/** The history that the filters and the address ask for. */
export function useUsageHistory(filters: UsageFilters): UsageHistoryState {
  const timeRangeState = useTimeRange("24h");
  const { timeRange } = timeRangeState;
  // Not a signal: how many keys there are bears on what is asked next, not on what is being asked.
  let keyCount = 0;
  const bucketQueryNow = createMemo(() => bucketQuery(timeRange(), now(), keyCount), undefined, { equals: sameQuery });
  const query = useUsageHistoryQuery(bucketQueryNow);
  const bucketMinutes = (): number => query.data?.bucketMinutes ?? bucketQueryNow().bucketMinutes;
  const span = createMemo(() => visibleSpan(timeRange(), query.data?.at ?? now(), bucketMinutes()), undefined, {
    equals: sameSpan,
  });
  const ranked = createMemo<RankedKey[]>((before) => {
    const history = query.data?.history ?? new Map();
    keyCount = history.size;
    return rankKeys(history, filters.metric(), span(), (key) => filters.matches(key.id, key.name), before);
  }, []);
  const shown = createMemo(() => ranked().flatMap(({ key }) => (filters.hiddenIds().has(key.id) ? [] : [key])));
  const sums = createMemo(() => addSums(shown().map((key) => sumsIn(key, span()))));
  const csvName = (): string =>
    `usage-${bucketName(bucketMinutes())}-${seoulMinute(span().from)}-to-${seoulMinute(span().to)}.csv`;
  return {
    ...timeRangeState,
    query,
    bucketMinutes,
    span,
    ranked,
    sums,
    isLoading: () => query.isPlaceholderData || query.data === undefined,
    exportCsv: () => downloadCsv(csvName().replaceAll(":", ""), usageHistoryCsv(shown(), span())),
  };
}
