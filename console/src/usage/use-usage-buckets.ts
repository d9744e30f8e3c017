import { createMemo, createSignal } from "solid-js";
import { useUsageChartQuery } from "../queries.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import {
  barStep,
  bucketMinutesFor,
  chosenSpan,
  type TimeRange,
  type TimeSpan,
  wholeBuckets,
} from "../lib/time-range.ts";
import { type ChartRequest, sameRequest, type UsageChartData } from "./usage-buckets.ts";

export interface UsageBuckets {
  query: ReturnType<typeof useUsageChartQuery>;
  /** The data on the screen: while other data loads or after they failed, still those before. Undefined before the first response. */
  chart: () => UsageChartData | undefined;
  /** What the chart is to show. */
  requested: () => ChartRequest;
  /** Of the data. */
  bucketMinutes: () => number;
  /** Of the bars in the chart. */
  barMinutes: () => number;
  span: () => TimeSpan;
  /** When the data were fetched, server time; undefined without data. */
  fetchedAt: () => number | undefined;
  /** Whether the chart shows what is requested. */
  isCurrent: () => boolean;
  isLoading: () => boolean;
  /** Whether the chart has reported the width of its plot. */
  isMeasured: () => boolean;
  /** Loading starts once the chart has reported the width of its plot. */
  setPlotWidth: (widthPx: number) => void;
}

/** All that a chart requests but the width of its buckets. */
export type ChartSelection = Omit<ChartRequest, "bucketMinutes" | "timeRange">;

/**
 * The usage over a time range, in as many buckets as the chart has bars.
 * @param days how far back the range may reach
 */
export function useUsageBuckets(
  timeRange: () => TimeRange,
  selection: () => ChartSelection,
  days: number,
): UsageBuckets {
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const chosen = (): TimeSpan => chosenSpan(timeRange(), now(), days);
  const bucketMinutesNow = createMemo(() => bucketMinutesFor(chosen(), now(), plotWidthPx()));
  const requested = createMemo(
    (): ChartRequest => ({ ...selection(), timeRange: timeRange(), bucketMinutes: bucketMinutesNow() }),
    undefined,
    { equals: sameRequest },
  );
  const isMeasured = (): boolean => plotWidthPx() > 0;
  const query = useUsageChartQuery(requested, days, isMeasured);
  const chart = createMemo<UsageChartData | undefined>((before) => query.data ?? before);
  const bucketMinutes = (): number => chart()?.bucketMinutes ?? bucketMinutesNow();
  const span = (): TimeSpan => chart()?.span ?? wholeBuckets(chosen(), now(), bucketMinutes());
  const isCurrent = (): boolean => {
    const shown = chart();
    return shown !== undefined && sameRequest(shown.request, requested());
  };
  return {
    query,
    chart,
    requested,
    bucketMinutes,
    barMinutes: () => barStep(span(), bucketMinutes() * minuteMs, plotWidthPx()) / minuteMs,
    span,
    fetchedAt: () => chart()?.fetchedAt,
    isCurrent,
    isLoading: () => !isCurrent() && !query.isError,
    isMeasured,
    setPlotWidth,
  };
}
