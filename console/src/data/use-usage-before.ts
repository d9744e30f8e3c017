import { createMemo } from "solid-js";
import { useFixedChartQuery } from "./queries.ts";
import { serverNow } from "./server-clock.ts";
import { sameSpan, spanBefore, type TimeSpan } from "./time-range.ts";
import { type ChartRequest, sameRequest, type UsageChartData } from "./usage-chart.ts";

/** The period before that of a chart. */
export interface UsageBefore {
  query: ReturnType<typeof useFixedChartQuery>;
  /** Undefined until it is there for what the chart shows, if it is not kept, and if it is not compared. */
  chart: () => UsageChartData | undefined;
  /** Whether it is compared but not kept. */
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
    return shown && before && { request: { ...shown.request, top: 0, list: 0 }, span: before };
  });
  const query = useFixedChartQuery(wanted);
  return {
    query,
    chart: () => {
      const [found, data] = [wanted(), query.data];
      const isFound = found && data && sameRequest(data.request, found.request) && sameSpan(data.span, found.span);
      return isFound === true ? data : undefined;
    },
    isMissing: () => compares() && chart() !== undefined && wanted() === undefined,
  };
}
