import { createMemo, type JSX } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import type { TooltipRow } from "../charts/tooltip.tsx";
import { compact, count, plural } from "../lib/format.ts";
import { dayMs, parseSeoulMinute } from "../lib/seoul-time.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import type { DailyUsageLine } from "./daily-usage.ts";
import { addSums, metricOf, type UsageMetric, usageMetrics, type UsageSums } from "./usage-sums.ts";

interface DailyChartProps {
  /** Latest first, without the days that have no usage; undefined while they load. */
  days: readonly DailyUsageLine[] | undefined;
  /** How many days before today the chart reaches back. */
  dayCount: number;
  /** `2026-11-21`; undefined while the days load. */
  today: string | undefined;
  metric: UsageMetric;
  loading: boolean;
  onZoom: (span: TimeSpan) => void;
  onPlotWidth: (widthPx: number) => void;
}

const colour = 1;

/** The sums of the days as bars. */
export function DailyChart(props: DailyChartProps): JSX.Element {
  const startOf = (day: string): number => parseSeoulMinute(`${day}T00:00`) ?? 0;
  const span = createMemo((): TimeSpan => {
    const today = startOf(props.today ?? "1970-01-01");
    return { from: today - props.dayCount * dayMs, to: today + dayMs };
  });
  const unit = (): string => usageMetrics[props.metric].label.toLowerCase();

  const valuesIn = (stepMs: number): Float64Array => {
    const values = new Float64Array(Math.ceil((span().to - span().from) / stepMs));
    for (const line of props.days ?? []) {
      const step = Math.floor((startOf(line.date) - span().from) / stepMs);
      values[step] = (values[step] ?? 0) + metricOf(line, props.metric);
    }
    return values;
  };

  const rows = (at: TimeSpan): TooltipRow[] => {
    const sums = sumsBetween(props.days ?? [], (date) => startOf(date) >= at.from && startOf(date) < at.to);
    if (sums.requests === 0) return [];
    return [
      { label: usageMetrics[props.metric].label, colour, value: count(metricOf(sums, props.metric)) },
      { label: "Requests", colour: -1, value: count(sums.requests) },
    ];
  };

  const summary = (): string => {
    const all = props.days ?? [];
    return `${plural(all.length, "day")} with usage, ${count(metricOf(addSums(all), props.metric))} ${unit()} in total.`;
  };

  return (
    <Chart
      label={`${usageMetrics[props.metric].label} by day`}
      summary={summary()}
      span={span()}
      bucketMs={dayMs}
      kind="bars"
      series={(stepMs) => [{ id: 1, label: usageMetrics[props.metric].label, colour, values: valuesIn(stepMs) }]}
      format={compact}
      whole
      rows={rows}
      onZoom={(zoom) => zoom && props.onZoom(zoom)}
      onPlotWidth={(widthPx) => props.onPlotWidth(widthPx)}
      zoomed={false}
      pans={false}
      loaded={props.days !== undefined}
      loading={props.loading}
    />
  );
}

const sumsBetween = (days: readonly DailyUsageLine[], includes: (date: string) => boolean): UsageSums =>
  addSums(days.filter(({ date }) => includes(date)));
