import { createEffect, createMemo, createSignal, on } from "solid-js";
import { causeOf } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import type { Cost } from "../lib/money.ts";
import { dayMs } from "../lib/seoul-time.ts";
import { createSeries } from "../lib/series.ts";
import { barStep } from "../lib/time-range.ts";
import { showToast } from "../lib/toasts.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { usePricesQuery } from "../queries.ts";
import { getLineCosts, lastDays, useCostsQuery } from "./cost-queries.ts";
import { dailyUsageCsv, type DailyUsageLine, lineOfRow } from "./daily-usage.ts";
import { addCosts } from "./model-usage.ts";
import {
  type DayPage,
  type DaysRequest,
  getDailyUsage,
  getDayPage,
  useDayPageQuery,
  useUsageByDayQuery,
} from "./queries.ts";
import { type KeySelection, matchesSelection } from "./usage-buckets.ts";
import { addSums, type UsageSums } from "./usage-sums.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

export const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));

export interface DailyUsageState {
  query: ReturnType<typeof useUsageByDayQuery>;
  pageQuery: ReturnType<typeof useDayPageQuery>;
  /** The sums of the days. While other days load or after they failed, still those before; undefined before the first response. */
  days: () => readonly DailyUsageLine[] | undefined;
  /** What the table shows: the days, or as many of the days by key as have been loaded. */
  lines: () => readonly DailyUsageLine[] | undefined;
  /** How many lines there are, loaded or not. */
  lineCount: () => number;
  sums: () => UsageSums;
  costs: DailyCosts;
  /** Loads more of the days by key. */
  loadMore: () => void;
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
  const range = (): DaysRequest => ({ days: Number(chosenDays()), selection: filters.selection() });
  const series = createSeries({ range, request: (chosen) => chosen, fetch: (request) => useUsageByDayQuery(request) });
  const { query, data } = series;
  const shownDays = (): number => data()?.request.days ?? Number(chosenDays());
  const days = createMemo(() => data() && [...(data()?.lines.values() ?? [])]);
  const costs = useDailyCosts(shownDays, filters.selection);
  const pages = useDayPages(() => ({ ...range(), withCosts: costs.currency() !== undefined }), perKey);
  const isCurrent = (): boolean => series.isCurrent() && (!perKey() || pages.isCurrent());
  const sums = createMemo(() => addSums(days() ?? []));
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const daysPerBar = (): number =>
    plotWidthPx() === 0 ? 1 : barStep({ from: 0, to: shownDays() * dayMs }, dayMs, plotWidthPx()) / dayMs;
  const [isExporting, setExporting] = createSignal(false);

  async function exportCsv(): Promise<void> {
    const shown = data();
    if (shown === undefined || isExporting()) return;
    const name = `usage-daily-${shown.request.days}-days.csv`;
    const costOf = costs.currency() === undefined ? undefined : costs.costOf;
    if (!perKey()) return downloadCsv(name, dailyUsageCsv(days() ?? [], false, costOf));
    setExporting(true);
    try {
      const { days: dayCount, selection } = shown.request;
      const rows = await getDailyUsage(dayCount);
      const lineCosts = costOf && (await getLineCosts(lastDays(dayCount), selection));
      const matching = rows.filter((row) => matchesSelection(selection, row.key_id, row.key_name));
      const lines = matching.map((row) => lineOfRow(row, lineCosts));
      downloadCsv(name, dailyUsageCsv(lines, true, costOf));
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
    lineCount: () => (perKey() ? data()?.rowCount : days()?.length) ?? 0,
    sums,
    costs,
    loadMore: pages.loadMore,
    shownDays,
    daysPerBar,
    setPlotWidth,
    today: () => data()?.today,
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
function useDayPages(range: () => DaysRequest, enabled: () => boolean) {
  const series = createSeries({
    range,
    request: (chosen) => chosen,
    fetch: (request) => useDayPageQuery(request, enabled),
  });
  const first = series.data;
  const [more, setMore] = createSignal<readonly DayPage[]>([]);
  const [isLoadingMore, setLoadingMore] = createSignal(false);
  const firstPage = createMemo(() => JSON.stringify([first()?.request, first()?.nextBefore]));
  createEffect(on(firstPage, () => setMore([])));
  const nextBefore = (): string | undefined => (more().at(-1) ?? first())?.nextBefore;

  async function loadMore(): Promise<void> {
    const [shown, before, continued] = [first(), nextBefore(), firstPage()];
    if (shown === undefined || before === undefined || isLoadingMore()) return;
    setLoadingMore(true);
    try {
      const page = await getDayPage(shown.request, before);
      if (continued === firstPage()) setMore((pages) => [...pages, page]);
    } catch (error) {
      showToast(`More days could not be loaded: ${causeOf(error)}.`, "error");
    } finally {
      setLoadingMore(false);
    }
  }

  const lines = createMemo(() => {
    const shown = first();
    return shown && [shown, ...more()].flatMap(({ lines: ofPage }) => Array.from(ofPage.values()));
  });
  return { ...series, lines, loadMore: () => void loadMore() };
}

interface DailyCosts {
  query: ReturnType<typeof useCostsQuery>;
  /** Undefined without prices. */
  currency: () => string | undefined;
  /** What a day cost, or a key on it; undefined while it is not known. */
  costOf: (line: DailyUsageLine) => Cost | undefined;
  /** What several days cost together. A day whose cost is not known makes the sum partial. */
  sumOf: (days: readonly DailyUsageLine[]) => Cost | undefined;
}

/** What the days of the daily usage cost. Nothing is loaded if there are no prices of models. */
function useDailyCosts(days: () => number, selection: () => KeySelection): DailyCosts {
  const prices = usePricesQuery();
  const hasPrices = (): boolean => (prices.data?.models.length ?? 0) > 0;
  const query = useCostsQuery(() => ({ days: days(), by: "day", selection: selection() }), hasPrices);
  const costs = createMemo(() =>
    query.isPlaceholderData ? undefined : query.data && new Map(query.data.rows.map((row) => [row.date, row])),
  );
  return {
    query,
    currency: () => (hasPrices() ? (prices.data?.currency ?? undefined) : undefined),
    costOf: (line) => (line.key === undefined ? costs()?.get(line.date) : line.cost),
    sumOf: (lines) => {
      const shown = costs();
      return shown && addCosts(lines.map((line) => shown.get(line.date) ?? unknownCost(line)));
    },
  };
}

const unknownCost = ({ input, output }: DailyUsageLine): Cost => ({ cost: null, cost_is_partial: input + output > 0 });
