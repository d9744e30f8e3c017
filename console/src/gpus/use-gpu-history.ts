import { createMemo, createSignal } from "solid-js";
import { createDrawnData } from "../lib/drawn-data.ts";
import { type GpuMeasure, type GpuSteps, gpuSteps } from "./gpu-history.ts";
import { useGpuHistoryQuery } from "../queries.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import {
  barStep,
  bucketMinutesFor,
  chosenSpan,
  daysBack,
  presetOptions,
  sameQuery,
  type TimeRange,
  type TimeSpan,
  wholeBuckets,
} from "../lib/time-range.ts";
import { type TimeRangeState, useTimeRange } from "../lib/use-time-range.ts";

export interface GpuHistoryState extends TimeRangeState {
  query: ReturnType<typeof useGpuHistoryQuery>;
  /** Undefined until the first response. */
  history: () => NonNullable<ReturnType<typeof useGpuHistoryQuery>["data"]>["history"] | undefined;
  /** Which range the history on the screen belongs to; undefined until the first response. */
  chart: () => { request: { timeRange: TimeRange } } | undefined;
  bucketMinutes: () => number;
  barMinutes: () => number;
  span: () => TimeSpan;
  /** When the data were fetched, server time; undefined without data. */
  fetchedAt: () => number | undefined;
  isLoading: () => boolean;
  stepsOf: (measure: GpuMeasure, stepMs: number) => GpuSteps;
  /** Loading starts once a chart has reported the width of its plot. */
  setPlotWidth: (widthPx: number) => void;
}

/**
 * One GPU's history over the time range in the URL, in as many buckets as a chart has steps.
 * @param gpuId undefined: nothing is loaded
 */
export function useGpuHistory(gpuId: () => number | undefined): GpuHistoryState {
  const timeRangeState = useTimeRange("24h", presetOptions);
  const { chosen } = timeRangeState;
  const [plotWidthPx, setPlotWidth] = createSignal(0);
  const requested = createMemo(
    () => {
      const wanted = chosenSpan(chosen(), now());
      return { days: daysBack(wanted, now()), bucketMinutes: bucketMinutesFor(wanted, now(), plotWidthPx()) };
    },
    undefined,
    { equals: sameQuery },
  );
  const query = useGpuHistoryQuery(gpuId, requested, () => plotWidthPx() > 0);
  const drawn = createDrawnData(() => query.data, chosen, requested);
  const history = (): ReturnType<GpuHistoryState["history"]> => drawn()?.data.history;
  const fetchedAt = (): number | undefined => drawn()?.data.fetchedAt;
  const bucketMinutes = (): number => drawn()?.data.bucketMinutes ?? requested().bucketMinutes;
  const span = createMemo(
    () => {
      const at = fetchedAt() ?? now();
      return wholeBuckets(chosenSpan(drawn()?.timeRange ?? chosen(), at), at, bucketMinutes());
    },
    undefined,
    { equals: (a, b) => a.from === b.from && a.to === b.to },
  );
  const isCurrent = (): boolean => {
    const data = drawn()?.data;
    return data !== undefined && sameQuery(data, requested());
  };
  return {
    ...timeRangeState,
    query,
    history,
    chart: () => {
      const shown = drawn();
      return shown && { request: { timeRange: shown.timeRange } };
    },
    bucketMinutes,
    barMinutes: () => barStep(span(), bucketMinutes() * minuteMs, plotWidthPx()) / minuteMs,
    span,
    fetchedAt,
    isLoading: () => !isCurrent() && !query.isError,
    stepsOf: (measure, stepMs) => gpuSteps(history() ?? [], measure, span(), stepMs),
    setPlotWidth,
  };
}
