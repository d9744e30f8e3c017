import { createMemo, type JSX } from "solid-js";
import { compact, count, plural, shareOf } from "../data/format.ts";
import type { RankedKey } from "../data/key-ranking.ts";
import { minuteMs } from "../data/seoul-time.ts";
import { spanLabel } from "../data/time-labels.ts";
import type { TimeSpan } from "../data/time-range.ts";
import { metricOf, sumsIn, type UsageMetric, usageMetrics, usageSteps } from "../data/usage-history.ts";
import { isHidden, type UsageView } from "../data/usage-view.ts";
import { Chart } from "./chart.tsx";
import type { Series } from "./shapes.ts";
import type { TooltipRow } from "./tooltip.tsx";

interface UsageChartProps {
  ranked: readonly RankedKey[];
  hiddenIds: ReadonlySet<number>;
  metric: UsageMetric;
  view: UsageView;
  span: TimeSpan;
  bucketMinutes: number;
  zoomed: boolean;
  loaded: boolean;
  loading: boolean;
  failure: JSX.Element;
  onZoom: (zoom: TimeSpan | undefined) => void;
  /** As in `Chart`. */
  pans?: boolean;
  onPlotWidth: (widthPx: number) => void;
  empty?: JSX.Element;
}

const tooltipRows = 8;

const kinds = { stacked: "bars", top5: "bars", lines: "lines", share: "shares" } as const;

/** Usage by key, and of the other keys together. */
export function UsageChart(props: UsageChartProps): JSX.Element {
  const shown = createMemo(() => props.ranked.filter((one) => !isHidden(one, props.hiddenIds)));

  const series = (stepMs: number): Series[] => {
    const drawn = shown().map(({ key, colour }) => {
      return { id: key.id, label: key.name, colour, values: usageSteps(key, props.metric, props.span, stepMs) };
    });
    const inOther = drawn.filter(({ colour }) => colour === 0);
    if (inOther.length === 0) return drawn;
    const other = { id: 0, label: "Other", colour: 0, values: sumSeries(inOther.map(({ values }) => values)) };
    return [...drawn.filter(({ colour }) => colour > 0), other];
  };

  const rows = (at: TimeSpan): TooltipRow[] => {
    const used = shown()
      .map(({ key, colour }) => ({ label: key.name, colour, total: metricOf(sumsIn(key, at), props.metric) }))
      .filter(({ total }) => total > 0)
      .toSorted((a, b) => b.total - a.total);
    const all = sum(used);
    const valueOf = (total: number): string =>
      props.view === "share" ? `${count(total)} (${shareOf(total, all)})` : count(total);
    const top = used
      .slice(0, tooltipRows)
      .map(({ label, colour, total }) => ({ label, colour, value: valueOf(total) }));
    const rest = used.slice(tooltipRows);
    if (rest.length > 0) top.push({ label: `and ${rest.length} more`, colour: 0, value: valueOf(sum(rest)) });
    if (used.length > 1) top.push({ label: "Total", colour: -1, value: count(all) });
    return top;
  };

  const summary = (): string => {
    const [first] = shown();
    if (first === undefined) return `No requests, ${spanLabel(props.span.from, props.span.to)}.`;
    return `${plural(shown().length, "key")}, ${count(sum(shown()))} ${usageMetrics[props.metric].label.toLowerCase()} in total, ${spanLabel(props.span.from, props.span.to)}. Most by ${first.key.name}: ${count(first.total)}.`;
  };

  return (
    <Chart
      label={`${usageMetrics[props.metric].label} by key over time`}
      summary={summary()}
      span={props.span}
      bucketMs={props.bucketMinutes * minuteMs}
      kind={kinds[props.view]}
      series={series}
      format={props.view === "share" ? (value) => `${value}%` : compact}
      whole
      rows={rows}
      onZoom={(zoom) => props.onZoom(zoom)}
      zoomed={props.zoomed}
      pans={props.pans ?? true}
      loaded={props.loaded}
      loading={props.loading}
      onPlotWidth={(widthPx) => props.onPlotWidth(widthPx)}
      failure={props.failure}
      empty={props.empty}
    />
  );
}

function sumSeries(all: readonly Float64Array[]): Float64Array {
  const sums = new Float64Array(all[0]?.length ?? 0);
  for (const values of all) {
    for (let step = 0; step < values.length; step++) sums[step] = (sums[step] ?? 0) + (values[step] ?? 0);
  }
  return sums;
}

const sum = (all: readonly { total: number }[]): number => all.reduce((total, one) => total + one.total, 0);
