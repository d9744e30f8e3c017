import { createMemo } from "solid-js";
import { useFixedChartQuery } from "../queries.ts";
import { serverNow } from "../lib/server-clock.ts";
import { sameSpan, spanBefore, type TimeSpan } from "../lib/time-range.ts";
import { type ChartRequest, sameRequest, type UsageChartData } from "./usage-buckets.ts";

/** The period before that of a chart. */
export interface UsageBefore {
  query: ReturnType<typeof useFixedChartQuery>;
  /** Undefined until it is there for what the chart shows, if it is not kept, and if it is not compared. */
  chart: () => UsageChartData | undefined;
  /** Whether it is compared but not kept, or not in such narrow buckets. */
  isMissing: () => boolean;
}

export function useUsageBefore(chart: () => UsageChartData | undefined, compares: () => boolean): UsageBefore {
  const span = (): TimeSpan | undefined => {
    const shown = chart();
    if (shown === undefined || !compares()) return undefined;
    const { request, bucketMinutes } = shown;
    return spanBefore(request.timeRange, shown.span, { now: serverNow(), bucketMinutes });
  };
  const wanted = createMemo((): { request: ChartRequest; span: TimeSpan } | undefined => {
    const [shown, before] = [chart(), span()];
    if (shown === undefined || before === undefined) return undefined;
    const { request, bucketMinutes } = shown;
    return { request: { ...request, bucketMinutes, top: 0, list: 0 }, span: before };
  });
  const query = useFixedChartQuery(wanted);
  const response = (): UsageChartData | undefined => {
    const [found, data] = [wanted(), query.data];
    return found && data && sameRequest(data.request, found.request) ? data : undefined;
  };
  /** Whether its minute counts are no longer kept, so that it has wider buckets than the chart. */
  const isWider = (): boolean => {
    const found = response();
    return found !== undefined && found.bucketMinutes !== found.request.bucketMinutes;
  };
  return {
    query,
    chart: () => {
      const [found, data] = [wanted(), response()];
      return found && data && !isWider() && sameSpan(data.span, found.span) ? data : undefined;
    },
    isMissing: () => compares() && chart() !== undefined && (wanted() === undefined || isWider()),
  };
}
