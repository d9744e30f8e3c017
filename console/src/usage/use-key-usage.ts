import { createMemo, createSignal } from "solid-js";
import { causeOf } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import { bucketName } from "../lib/format.ts";
import { type RankedKey, rankKeys } from "./key-ranking.ts";
import { getUsagePoints } from "../queries.ts";
import { seoulMinute } from "../lib/seoul-time.ts";
import { maxDays } from "../lib/time-range.ts";
import { showToast } from "../lib/toasts.ts";
import { type BucketSpan, matchesSelection, type UsageChartData } from "./usage-buckets.ts";
import { usageHistoryCsv, type UsageSums } from "./usage-sums.ts";
import { otherId, usageViews } from "./usage-view.ts";
import { type TimeRangeState, useTimeRange } from "../lib/use-time-range.ts";
import { type UsageBefore, useUsageBefore } from "./use-usage-before.ts";
import { type UsageBuckets, useUsageBuckets } from "./use-usage-buckets.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

export interface UsageHistoryState extends TimeRangeState, UsageBuckets {
  /** The listed keys, highest total first; hidden ones too. */
  ranked: () => RankedKey[];
  /** Over what is not hidden; undefined before the first response. */
  sums: () => UsageSums | undefined;
  before: UsageBefore;
  /** Whether keys are left out as part of Other. */
  hidesOther: () => boolean;
  exportCsv: () => void;
  isExporting: () => boolean;
}

/** The most that the API lists. */
const listedKeys = 1000;

/** The usage over the time range in the URL, filtered. */
export function useUsageHistory(filters: UsageFilters): UsageHistoryState {
  const timeRangeState = useTimeRange("24h");
  const selection = createMemo(() => ({
    ...filters.selection(),
    metric: filters.metric(),
    top: usageViews[filters.view()].topCount,
    list: listedKeys,
  }));
  const buckets = useUsageBuckets(timeRangeState.chosen, selection, maxDays);
  const ranked = createMemo<RankedKey[]>((before) => rankKeys(buckets.chart(), before), []);
  const hidesOther = (): boolean => filters.hiddenIds().has(otherId) && (buckets.chart()?.other.keyCount ?? 0) > 0;
  // Other keys were part of Other then.
  const before = useUsageBefore(buckets.chart, () => filters.compares() && !hidesOther());
  const [isExporting, setExporting] = createSignal(false);

  /** Fetches the usage of all keys: the chart has only that of the top ones. */
  async function exportCsv(): Promise<void> {
    const shown = buckets.chart();
    if (shown === undefined || isExporting()) return;
    setExporting(true);
    try {
      const found = await getUsagePoints(shown);
      const matching = found.points.filter(
        ({ key_id, key_name }) =>
          matchesSelection(shown.request, key_id, key_name) && (!hidesOther() || shown.series.has(key_id)),
      );
      downloadCsv(csvName(found), usageHistoryCsv(matching));
    } catch (error) {
      showToast(`The CSV could not be loaded: ${causeOf(error)}.`, "error");
    } finally {
      setExporting(false);
    }
  }

  return {
    ...timeRangeState,
    ...buckets,
    ranked,
    sums: () => shownSums(buckets.chart(), hidesOther()),
    before,
    hidesOther,
    exportCsv: () => void exportCsv(),
    isExporting,
  };
}

function shownSums(chart: UsageChartData | undefined, hidesOther: boolean): UsageSums | undefined {
  if (chart === undefined || !hidesOther) return chart?.sums;
  const { sums, other } = chart;
  return {
    requests: sums.requests - other.sums.requests,
    input: sums.input - other.sums.input,
    output: sums.output - other.sums.output,
  };
}

const csvName = ({ span, bucketMinutes }: BucketSpan): string =>
  `usage-${bucketName(bucketMinutes)}-${seoulMinute(span.from)}-to-${seoulMinute(span.to)}-KST.csv`.replaceAll(":", "");
