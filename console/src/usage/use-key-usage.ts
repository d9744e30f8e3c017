import { createMemo, createSignal } from "solid-js";
import { causeOf } from "../client.ts";
import { downloadCsv } from "../lib/csv.ts";
import { bucketName } from "../lib/format.ts";
import { seoulMinute } from "../lib/seoul-time.ts";
import { createSeries, sameRequest } from "../lib/series.ts";
import { serverNow } from "../lib/server-clock.ts";
import { maxDays, sameSpan, spanBefore, type TimeSpan } from "../lib/time-range.ts";
import { showToast } from "../lib/toasts.ts";
import { type TimeRangeState, useTimeRange } from "../lib/use-time-range.ts";
import { type RankedKey, rankKeys } from "./key-ranking.ts";
import { type FixedRequest, getUsagePoints, useFixedBucketsQuery } from "./queries.ts";
import { type BucketSpan, type UsageBuckets, usagePointsCsv } from "./usage-buckets.ts";
import type { UsageSums } from "./usage-sums.ts";
import { otherId, usageViews } from "./usage-view.ts";
import type { UsageFilters } from "./use-usage-filters.ts";
import { type UsageSeries, useUsageSeries } from "./use-usage-series.ts";

export interface KeyUsageState extends TimeRangeState, UsageSeries {
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
export function useKeyUsage(filters: UsageFilters): KeyUsageState {
  const timeRangeState = useTimeRange("24h");
  const selection = createMemo(() => ({
    ...filters.selection(),
    metric: filters.metric(),
    top: usageViews[filters.view()].topCount,
    list: listedKeys,
  }));
  const series = useUsageSeries(timeRangeState.chosen, selection, maxDays);
  const ranked = createMemo<RankedKey[]>((before) => rankKeys(series.data(), before), []);
  const hidesOther = (): boolean => filters.hiddenIds().has(otherId) && (series.data()?.other.keyCount ?? 0) > 0;
  // Other keys were part of Other then.
  const before = useUsageBefore(series.data, () => filters.compares() && !hidesOther());
  const [isExporting, setExporting] = createSignal(false);

  /** Fetches the series of all keys: the chart has only those of the top ones. */
  async function exportCsv(): Promise<void> {
    const shown = series.data();
    if (shown === undefined || isExporting()) return;
    setExporting(true);
    try {
      const points = await getUsagePoints(shown);
      const isShown = (id: number | undefined): boolean => !hidesOther() || shown.series.has(id ?? otherId);
      downloadCsv(csvName(shown), usagePointsCsv(points.filter(({ key }) => isShown(key?.id))));
    } catch (error) {
      showToast(`The CSV could not be loaded: ${causeOf(error)}.`, "error");
    } finally {
      setExporting(false);
    }
  }

  return {
    ...timeRangeState,
    ...series,
    ranked,
    sums: () => shownSums(series.data(), hidesOther()),
    before,
    hidesOther,
    exportCsv: () => void exportCsv(),
    isExporting,
  };
}

function shownSums(buckets: UsageBuckets | undefined, hidesOther: boolean): UsageSums | undefined {
  if (buckets === undefined || !hidesOther) return buckets?.sums;
  const { sums, other } = buckets;
  return {
    requests: sums.requests - other.sums.requests,
    input: sums.input - other.sums.input,
    output: sums.output - other.sums.output,
  };
}

const csvName = ({ span, bucketMinutes }: BucketSpan): string =>
  `usage-${bucketName(bucketMinutes)}-${seoulMinute(span.from)}-to-${seoulMinute(span.to)}-KST.csv`.replaceAll(":", "");

/** The usage in the period before the one that is shown. */
interface UsageBefore {
  query: ReturnType<typeof useFixedBucketsQuery>;
  /** Undefined until it is there for what is shown, if it is not kept, and if it is not compared. */
  data: () => UsageBuckets | undefined;
  /** Whether it is compared but not kept, or not in such narrow buckets. */
  isMissing: () => boolean;
}

function useUsageBefore(shown: () => UsageBuckets | undefined, compares: () => boolean): UsageBefore {
  const spanOf = ({ request, span, bucketMinutes }: UsageBuckets): TimeSpan | undefined =>
    compares() ? spanBefore(request.timeRange, span, { now: serverNow(), bucketMinutes }) : undefined;
  const wanted = createMemo((): FixedRequest | undefined => {
    const after = shown();
    const span = after && spanOf(after);
    if (after === undefined || span === undefined) return undefined;
    return { request: { ...after.request, bucketMinutes: after.bucketMinutes, top: 0, list: 0 }, span };
  });
  const series = createSeries({ range: wanted, request: (range) => range, fetch: useFixedBucketsQuery });
  /** Whether its minute counts are no longer kept, so that it has wider buckets than what is shown. */
  const isWider = (): boolean => {
    const [found, data] = [wanted(), series.data()];
    // Time moves the span. While the next one loads, that of before tells the same.
    if (found === undefined || data === undefined || !sameRequest(data.request?.request, found.request)) return false;
    return data.buckets.bucketMinutes !== found.request.bucketMinutes;
  };
  return {
    query: series.query,
    data: () => {
      const [found, data] = [wanted(), series.isCurrent() ? series.data() : undefined];
      return found && data && !isWider() && sameSpan(data.buckets.span, found.span) ? data.buckets : undefined;
    },
    isMissing: () => compares() && shown() !== undefined && (wanted() === undefined || isWider()),
  };
}
