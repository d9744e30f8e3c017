import { createMemo, type JSX } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import type { Series } from "../charts/shapes.ts";
import type { TooltipRow } from "../charts/tooltip.tsx";
import { compact, count, plural, shareOf } from "../lib/format.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { spanLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import type { RankedKey } from "./key-ranking.ts";
import { inSteps, sumWithin, type UsageBuckets } from "./usage-buckets.ts";
import { metricOf, type UsageMetric, usageMetrics } from "./usage-sums.ts";
import { otherId, otherLabel, type UsageView } from "./usage-view.ts";

interface UsageChartProps {
  /** Undefined before the first response. */
  buckets: UsageBuckets | undefined;
  /** With the colours of the keys. */
  ranked: readonly RankedKey[];
  metric: UsageMetric;
  view: UsageView;
  span: TimeSpan;
  bucketMinutes: number;
  /** See `Chart`. */
  zoomed?: boolean;
  loading: boolean;
  failure: JSX.Element;
  onZoom: (zoom: TimeSpan | undefined) => void;
  onPlotWidth: (widthPx: number) => void;
  empty?: JSX.Element;
}

const kinds = { stacked: "bars", top5: "bars", lines: "lines", share: "shares" } as const;

/** Usage by key, and of the other keys together. */
export function UsageChart(props: UsageChartProps): JSX.Element {
  const colours = createMemo(() => new Map(props.ranked.map(({ key, colour }) => [key.id, colour])));

  const series = (stepMs: number): Series[] => {
    const { buckets } = props;
    if (buckets === undefined) return [];
    const colourOf = colours();
    const drawn = Array.from(buckets.series, ([id, values]) => ({
      id,
      label: buckets.keys.get(id)?.name ?? "",
      colour: colourOf.get(id) ?? 0,
      values: inSteps(values, buckets, stepMs),
    }));
    if (buckets.other.keyCount === 0) return drawn;
    const { keyCount, values } = buckets.other;
    return [
      ...drawn,
      {
        id: otherId,
        label: drawn.length === 0 ? "All" : otherLabel(keyCount, buckets.request.by),
        colour: drawn.length === 0 ? 1 : 0,
        values: inSteps(values, buckets, stepMs),
      },
    ];
  };

  const rows = (at: TimeSpan, all: readonly Series[]): TooltipRow[] => {
    const { buckets } = props;
    if (buckets === undefined) return [];
    const valueOf = ({ id }: Series): number => sumWithin(buckets.series.get(id) ?? buckets.other.values, buckets, at);
    const used = all.map((one) => ({ ...one, total: valueOf(one) })).filter(({ total }) => total > 0);
    const top = used.filter(({ id }) => id !== otherId).toSorted((a, b) => b.total - a.total);
    const other = used.filter(({ id }) => id === otherId);
    const whole = sum(used);
    const text = (total: number): string =>
      props.view === "share" ? `${count(total)} (${shareOf(total, whole)})` : count(total);
    const found = [...top, ...other].map(({ label, colour, total }) => ({ label, colour, value: text(total) }));
    if (used.length > 1) found.push({ label: "Total", colour: -1, value: count(whole) });
    return found;
  };

  return (
    <Chart
      label={`${usageMetrics[props.metric].label} by ${props.buckets?.request.by ?? "key"} over time`}
      summary={summaryOf(props.buckets, props.span)}
      span={props.span}
      bucketMs={props.bucketMinutes * minuteMs}
      kind={kinds[props.view]}
      series={series}
      format={props.view === "share" ? (value) => `${value}%` : compact}
      whole
      rows={rows}
      onZoom={(zoom) => props.onZoom(zoom)}
      {...(props.zoomed !== undefined && { zoomed: props.zoomed })}
      loaded={props.buckets !== undefined}
      loading={props.loading}
      onPlotWidth={(widthPx) => props.onPlotWidth(widthPx)}
      failure={props.failure}
      empty={props.empty}
    />
  );
}

/** What a screen reader says of the chart. */
function summaryOf(buckets: UsageBuckets | undefined, { from, to }: TimeSpan): string {
  const span = spanLabel(from, to);
  if (buckets === undefined || buckets.sums.requests === 0) return `No requests, ${span}.`;
  const unit = usageMetrics[buckets.metric].label.toLowerCase();
  const keyCount = buckets.series.size + buckets.other.keyCount;
  const [first] = Array.from(buckets.series.keys(), (id) => buckets.keys.get(id));
  const most = first && ` Most by ${first.name}: ${count(metricOf(first.sums, buckets.metric))}.`;
  return `${plural(keyCount, buckets.request.by)}, ${count(metricOf(buckets.sums, buckets.metric))} ${unit} in total, ${span}.${most ?? ""}`;
}

const sum = (all: readonly { total: number }[]): number => all.reduce((total, one) => total + one.total, 0);
