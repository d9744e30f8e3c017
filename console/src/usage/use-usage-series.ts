import { createMemo, createSignal } from "solid-js";
import { minuteMs } from "../lib/seoul-time.ts";
import { createSeries } from "../lib/series.ts";
import { now } from "../lib/server-clock.ts";
import {
  barStep,
  bucketMinutesFor,
  chosenSpan,
  type TimeRange,
  type TimeSpan,
  wholeBuckets,
} from "../lib/time-range.ts";
import { useUsageBucketsQuery } from "./queries.ts";
import type { BucketsRequest } from "./usage-buckets.ts";

/** All that a chart requests but the time range and the width of its buckets. */
export type UsageSelection = Omit<BucketsRequest, "bucketMinutes" | "timeRange">;

export type UsageSeries = ReturnType<typeof useUsageSeries>;

/**
 * The usage over a time range, in as many buckets as the chart has bars.
 * @param days how far back the range may reach
 * @param isReady whether it is known what to ask for
 */
export function useUsageSeries(
  timeRange: () => TimeRange,
  selection: () => UsageSelection,
  days: number,
  isReady: () => boolean = () => true,
) {
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const chosen = (): TimeSpan => chosenSpan(timeRange(), now(), days);
  const bucketMinutesNow = createMemo(() => bucketMinutesFor(chosen(), now(), plotWidthPx()));
  const series = createSeries({
    range: timeRange,
    width: plotWidthPx,
    request: (range): BucketsRequest => ({ ...selection(), timeRange: range, bucketMinutes: bucketMinutesNow() }),
    fetch: (requested, isMeasured) => useUsageBucketsQuery(requested, days, () => isMeasured() && isReady()),
  });
  /** The width of a bucket of the data. */
  const bucketMinutes = (): number => series.data()?.bucketMinutes ?? series.requested().bucketMinutes;
  const span = (): TimeSpan => series.data()?.span ?? wholeBuckets(chosen(), now(), bucketMinutes());
  return {
    ...series,
    bucketMinutes,
    /** The width of a bar in the chart. */
    barMinutes: () => barStep(span(), bucketMinutes() * minuteMs, plotWidthPx()) / minuteMs,
    span,
    /** 0 until the chart has reported it. */
    plotWidthPx,
    setPlotWidth: (widthPx: number): void => void setPlotWidth(widthPx),
  };
}
