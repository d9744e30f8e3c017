import { useSearchParams } from "@solidjs/router";
import type { UseQueryResult } from "@tanstack/solid-query";
import { createMemo } from "solid-js";
import { downloadCsv } from "./csv.ts";
import { bucketName } from "./format.ts";
import { addSums, historyCsv, isMetric, type Metric, type Sums, sumsIn } from "./usage-history.ts";
import { now } from "./server-clock.ts";
import { useView, type ViewControl } from "./use-time-range.ts";
import { type RankedKey, rankKeys } from "./key-ranking.ts";
import { useHistory } from "./queries.ts";
import { seoulMinute } from "./seoul-time.ts";
import { bucketQuery, sameQuery, sameSpan, type Span, visibleSpan } from "./time-range.ts";

/** What the usage page is asked to show: all of it lives in the address. */
export interface UsageFilters {
  metric: () => Metric;
  text: () => string;
  /** Undefined: all keys. */
  onlyKey: () => number | undefined;
  hidden: () => ReadonlySet<number>;
  shows: (id: number, name: string) => boolean;
  isFiltered: () => boolean;
  setMetric: (metric: Metric) => void;
  setText: (text: string) => void;
  setHidden: (ids: ReadonlySet<number>) => void;
  showAllKeys: () => void;
  clear: () => void;
}

export function useUsageFilters(): UsageFilters {
  const [parameters, setParameters] = useSearchParams<{ metric?: string; q?: string; key?: string; hide?: string }>();
  const hidden = createMemo(() => new Set((parameters.hide ?? "").split(",").filter(Boolean).map(Number)));
  const text = (): string => parameters.q ?? "";
  const onlyKey = (): number | undefined => (parameters.key === undefined ? undefined : Number(parameters.key));
  // Typing leaves no trail in the history: Back leads to the page before, not to the letter before.
  const replace = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return {
    metric: () => (isMetric(parameters.metric) ? parameters.metric : "output"),
    text,
    onlyKey,
    hidden,
    shows: (id, name) =>
      (onlyKey() === undefined || id === onlyKey()) && name.toLowerCase().includes(text().trim().toLowerCase()),
    isFiltered: () => text() !== "" || onlyKey() !== undefined,
    setMetric: (metric) => replace({ metric: metric === "output" ? undefined : metric }),
    setText: (typed) => replace({ q: typed }),
    setHidden: (ids) => replace({ hide: [...ids].toSorted((a, b) => a - b).join(",") }),
    showAllKeys: () => setParameters({ key: undefined }),
    clear: () => replace({ q: undefined, key: undefined, hide: undefined }),
  };
}

export interface UsageView extends ViewControl {
  query: UseQueryResult<{ history: ReadonlyMap<number, { name: string }> }>;
  bucketMinutes: () => number;
  span: () => Span;
  /** All that match the filter, most used first; hidden ones too. */
  ranked: () => RankedKey[];
  /** Over what is shown. */
  sums: () => Sums;
  isLoading: () => boolean;
  exportCsv: () => void;
}

/** The history that the filters and the address ask for. */
export function useUsageView(filters: UsageFilters): UsageView {
  const control = useView("24h");
  const { view } = control;
  // Not a signal: how many keys there are bears on what is asked next, not on what is being asked.
  let keysSeen = 0;
  const asked = createMemo(() => bucketQuery(view(), now(), keysSeen), undefined, { equals: sameQuery });
  const query = useHistory(asked);
  const bucketMinutes = (): number => query.data?.bucketMinutes ?? asked().bucketMinutes;
  const span = createMemo(() => visibleSpan(view(), query.data?.at ?? now(), bucketMinutes()), undefined, {
    equals: sameSpan,
  });
  const ranked = createMemo<RankedKey[]>((before) => {
    const known = query.data?.history ?? new Map();
    keysSeen = known.size;
    return rankKeys(known, filters.metric(), span(), (key) => filters.shows(key.id, key.name), before);
  }, []);
  const shown = createMemo(() => ranked().flatMap(({ key }) => (filters.hidden().has(key.id) ? [] : [key])));
  const sums = createMemo(() => addSums(shown().map((key) => sumsIn(key, span()))));
  const csvName = (): string =>
    `usage-${bucketName(bucketMinutes())}-${seoulMinute(span().from)}-to-${seoulMinute(span().to)}.csv`;
  return {
    ...control,
    query,
    bucketMinutes,
    span,
    ranked,
    sums,
    isLoading: () => query.isPlaceholderData || query.data === undefined,
    exportCsv: () => downloadCsv(csvName().replaceAll(":", ""), historyCsv(shown(), span())),
  };
}
