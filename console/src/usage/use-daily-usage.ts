import { createEffect, createMemo, createSignal, on } from "solid-js";
import { causeOf } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import { dailyUsageCsv, type DailyUsageLine, lineOfRow } from "./daily-usage.ts";
import { type DayPage, getDailyUsage, getDayPage, useDayPageQuery, useUsageByDayQuery } from "../queries.ts";
import { showToast } from "../lib/toasts.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { type KeySelection, matchesSelection } from "./usage-buckets.ts";
import { addSums, type UsageSums } from "./usage-sums.ts";
import { type DailyCosts, useDailyCosts } from "./use-daily-costs.ts";
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
  const query = useUsageByDayQuery(() => Number(chosenDays()), filters.selection);
  const data = createMemo<typeof query.data>((before) => query.data ?? before);
  const days = createMemo(() => data() && [...(data()?.lines.values() ?? [])]);
  const pages = useDayPages(() => Number(chosenDays()), filters.selection, perKey);
  const isDayData = (shown: { days: number; selection: KeySelection } | undefined): boolean =>
    shown !== undefined &&
    shown.days === Number(chosenDays()) &&
    JSON.stringify(shown.selection) === JSON.stringify(filters.selection());
  const isCurrent = (): boolean => isDayData(data()) && (!perKey() || isDayData(pages.first()));
  const sums = createMemo(() => addSums(days() ?? []));
  const costs = useDailyCosts(() => data()?.days ?? Number(chosenDays()), filters.selection, perKey);
  const [isExporting, setExporting] = createSignal(false);

  async function exportCsv(): Promise<void> {
    const shown = data();
    if (shown === undefined || isExporting()) return;
    const name = `usage-daily-${shown.days}-days.csv`;
    const costOf = costs.currency() === undefined ? undefined : costs.costOf;
    if (!perKey()) return downloadCsv(name, dailyUsageCsv(days() ?? [], false, costOf));
    setExporting(true);
    try {
      const rows = await getDailyUsage(shown.days);
      const matching = rows.filter((row) => matchesSelection(shown.selection, row.key_id, row.key_name));
      downloadCsv(name, dailyUsageCsv(matching.map(lineOfRow), true, costOf));
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
    shownDays: () => data()?.days ?? Number(chosenDays()),
    today: () => data()?.today,
    fetchedAt: () => data()?.fetchedAt,
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
function useDayPages(days: () => number, selection: () => KeySelection, enabled: () => boolean) {
  const query = useDayPageQuery(days, selection, enabled);
  const first = createMemo<typeof query.data>((before) => query.data ?? before);
  const [more, setMore] = createSignal<readonly DayPage[]>([]);
  const [isLoadingMore, setLoadingMore] = createSignal(false);
  const firstPage = createMemo(() => JSON.stringify([first()?.days, first()?.selection, first()?.nextBefore]));
  createEffect(on(firstPage, () => setMore([])));
  const nextBefore = (): string | undefined => (more().at(-1) ?? first())?.nextBefore;

  async function loadMore(): Promise<void> {
    const [shown, before, continued] = [first(), nextBefore(), firstPage()];
    if (shown === undefined || before === undefined || isLoadingMore()) return;
    setLoadingMore(true);
    try {
      const page = await getDayPage(shown.days, shown.selection, before);
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
  return { query, first, lines, loadMore: () => void loadMore() };
}
