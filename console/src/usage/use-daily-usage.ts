import { createEffect, createMemo, createSignal, on } from "solid-js";
import { causeOf } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import type { Cost } from "../lib/money.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { createSeries, sameRequest } from "../lib/series.ts";
import { barStep } from "../lib/time-range.ts";
import { showToast } from "../lib/toasts.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { usePricesQuery } from "../queries.ts";
import { type CostsRequest, getCostPage, getCosts, useCostPageQuery, useCostsQuery } from "./cost-queries.ts";
import { dailyUsageCsv, type DailyUsageLine, lineOf, mergeLines } from "./daily-usage.ts";
import { addCosts } from "./model-usage.ts";
import { addSums, type UsageSums } from "./usage-sums.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

export const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));

export interface DailyUsageState {
  query: ReturnType<typeof useCostsQuery>;
  pageQuery: ReturnType<typeof useCostPageQuery>;
  /** The sums of the days. While other days load or after they failed, still those before; undefined before the first response. */
  days: () => readonly DailyUsageLine[] | undefined;
  /** What the table shows: the days, or as many of the days by key as have been loaded. */
  lines: () => readonly DailyUsageLine[] | undefined;
  /** Whether there are more days by key than have been loaded. */
  hasMore: () => boolean;
  /** Loads more of the days by key. */
  loadMore: () => void;
  sums: () => UsageSums;
  cost: () => Cost;
  /** Undefined without prices of models. */
  currency: () => string | undefined;
  shownDays: () => number;
  /** How many days a bar of the chart sums up. */
  daysPerBar: () => number;
  setPlotWidth: (widthPx: number) => void;
  /** The last of the shown days. */
  today: () => string | undefined;
  /** Server time; undefined without data. */
  fetchedAt: () => number | undefined;
  /** Whether the table shows the chosen days. */
  isCurrent: () => boolean;
  isLoading: () => boolean;
  isExporting: () => boolean;
  chosenDays: () => DayChoice;
  perKey: () => boolean;
  /** The chosen days, grouping and keys, as text. */
  choice: () => string;
  setDays: (days: DayChoice) => void;
  setPerKey: (perKey: boolean) => void;
  exportCsv: () => void;
}

/** The usage of the days in the URL, of the keys that the filters leave. */
export function useDailyUsage(filters: UsageFilters): DailyUsageState {
  const [parameters, setParameters] = useUrlParameters<"days" | "daily">();
  const chosenDays = (): DayChoice => dayChoices.find((choice) => choice === parameters.days) ?? "30";
  const perKey = (): boolean => parameters.daily === "key";
  const range = (): CostsRequest => ({ days: Number(chosenDays()), selection: filters.selection(), by: "day" });
  const series = createSeries({ range, request: (chosen) => chosen, fetch: (request) => useCostsQuery(request) });
  const { query, data } = series;
  const shownDays = (): number => data()?.request.days ?? Number(chosenDays());
  const days = createMemo(() => data()?.rows.map(lineOf));
  const sums = createMemo(() => addSums(days() ?? []));
  const cost = createMemo(() => addCosts((days() ?? []).map((line) => line.cost)));
  const pages = useDayPages(() => ({ ...range(), by: "day_key" }), perKey);
  const isCurrent = (): boolean => series.isCurrent() && (!perKey() || pages.isCurrent());
  const prices = usePricesQuery();
  const currency = (): string | undefined =>
    (prices.data?.models.length ?? 0) > 0 ? (data()?.currency ?? undefined) : undefined;
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const daysPerBar = (): number =>
    plotWidthPx() === 0 ? 1 : barStep({ from: 0, to: shownDays() * dayMs }, dayMs, plotWidthPx()) / dayMs;
  const [isExporting, setExporting] = createSignal(false);

  async function exportCsv(): Promise<void> {
    const shown = data();
    if (shown === undefined || isExporting()) return;
    const download = (lines: readonly DailyUsageLine[], ofKeys: boolean): void =>
      downloadCsv(`usage-daily-${shown.request.days}-days.csv`, dailyUsageCsv(lines, ofKeys, currency() !== undefined));
    if (!perKey()) return download(days() ?? [], false);
    setExporting(true);
    try {
      download((await getCosts({ ...shown.request, by: "day_key" })).rows.map(lineOf), true);
    } catch (error) {
      showToast(`The CSV could not be loaded: ${causeOf(error)}.`, "error");
    } finally {
      setExporting(false);
    }
  }

  return {
    query,
    pageQuery: pages.query,
    days,
    lines: () => (perKey() ? pages.lines() : days()),
    hasMore: () => perKey() && pages.next() !== undefined,
    loadMore: pages.loadMore,
    sums,
    cost,
    currency,
    shownDays,
    daysPerBar,
    setPlotWidth,
    today: () => data()?.to,
    fetchedAt: series.fetchedAt,
    isCurrent,
    isLoading: () => !isCurrent() && !query.isError && !(perKey() && pages.query.isError),
    isExporting,
    chosenDays,
    perKey,
    choice: () => JSON.stringify([chosenDays(), perKey(), filters.selection()]),
    setDays: (chosen) => setParameters({ days: chosen === "30" ? undefined : chosen }, { replace: true }),
    setPerKey: (chosen) => setParameters({ daily: chosen ? "key" : undefined }, { replace: true }),
    exportCsv: () => void exportCsv(),
  };
}

/** The days by key. The first page is refreshed; those after it are loaded once, since their days do not change. */
function useDayPages(range: () => CostsRequest, enabled: () => boolean) {
  const series = createSeries({
    range,
    request: (chosen) => chosen,
    fetch: (request) => useCostPageQuery(request, enabled),
  });
  const [lines, setLines] = createSignal<readonly DailyUsageLine[]>();
  const [next, setNext] = createSignal<string>();
  const [isLoadingMore, setLoadingMore] = createSignal(false);
  let shown: CostsRequest | undefined;
  createEffect(
    on(series.data, (page) => {
      if (page === undefined) return;
      const isRefresh = sameRequest(shown, page.request);
      // A refresh may push rows off the first page: they stay, and the next page begins where it did.
      if (!isRefresh) setNext(page.next);
      setLines((before) => mergeLines(isRefresh ? (before ?? []) : [], page.rows.map(lineOf)));
      shown = page.request;
    }),
  );

  async function loadMore(): Promise<void> {
    const [request, cursor] = [shown, next()];
    if (request === undefined || cursor === undefined || isLoadingMore()) return;
    setLoadingMore(true);
    try {
      const page = await getCostPage(request, cursor);
      if (!sameRequest(shown, request)) return;
      setNext(page.next);
      setLines((before) => mergeLines(before ?? [], page.rows.map(lineOf)));
    } catch (error) {
      showToast(`More days could not be loaded: ${causeOf(error)}.`, "error");
    } finally {
      setLoadingMore(false);
    }
  }

  return { ...series, lines, next, loadMore: () => void loadMore() };
}
