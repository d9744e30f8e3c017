import { createMemo, createSignal } from "solid-js";
import { minuteMs } from "../lib/seoul-time.ts";
import { createSeries } from "../lib/series.ts";
import { now } from "../lib/server-clock.ts";
import { barStep, bucketMinutesFor, chosenSpan, presetOptions, sameSpan, wholeBuckets } from "../lib/time-range.ts";
import { useTimeRange } from "../lib/use-time-range.ts";
import { coversRange, daysBack, type GpuMeasure, gpuSteps, type HistoryRequest } from "./gpu-history.ts";
import { useGpuHistoryQuery } from "./queries.ts";

export type GpuHistoryState = ReturnType<typeof useGpuHistory>;

/**
 * One GPU's history over the time range in the URL, in as many buckets as a chart has steps.
 * @param gpuId undefined: nothing is loaded
 */
export function useGpuHistory(gpuId: () => number | undefined) {
  const timeRangeState = useTimeRange("24h", presetOptions);
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const { chosen } = timeRangeState;
  const days = createMemo(() => daysBack(chosen(), now()));
  const bucketMinutesNow = createMemo(() => bucketMinutesFor(chosenSpan(chosen(), now()), now(), plotWidthPx()));
  const series = createSeries({
    range: chosen,
    width: plotWidthPx,
    request: (): HistoryRequest => ({ days: days(), bucketMinutes: bucketMinutesNow() }),
    fetch: (requested, isMeasured) => useGpuHistoryQuery(gpuId, requested, isMeasured),
    covers: coversRange,
  });
  const bucketMinutes = (): number => (series.data()?.request ?? series.requested()).bucketMinutes;
  const span = createMemo(
    () => {
      const at = series.fetchedAt() ?? now();
      return wholeBuckets(chosenSpan(series.range() ?? chosen(), at), at, bucketMinutes());
    },
    undefined,
    { equals: sameSpan },
  );
  return {
    ...timeRangeState,
    ...series,
    bucketMinutes,
    barMinutes: () => barStep(span(), bucketMinutes() * minuteMs, plotWidthPx()) / minuteMs,
    span,
    stepsOf: (measure: GpuMeasure, stepMs: number) => gpuSteps(series.data()?.history ?? [], measure, span(), stepMs),
    setPlotWidth: (widthPx: number): void => void setPlotWidth(widthPx),
  };
}
