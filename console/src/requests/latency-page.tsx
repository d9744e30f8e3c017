import { useNavigate } from "@solidjs/router";
import { createSignal, type JSX } from "solid-js";
import { ChartLegend, type LegendItem } from "../charts/chart-legend.tsx";
import { Chart } from "../charts/chart.tsx";
import { milliseconds, threeDigits } from "../lib/format.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { type TimeSpan } from "../lib/time-range.ts";
import { lastHours } from "../lib/time-steps.ts";
import { requestsHref } from "../lib/requests-href.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { createBars } from "../ui/chart-range.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { FailuresPanel } from "./failures-panel.tsx";
import { latencyBands, type LatencyMetric, quantilesOf } from "./latency-bands.ts";
import { chartBucketMinutes as bucketMinutes, chartHours as hours, type Latency, useLatencyQuery } from "./queries.ts";
import "../styles/lazy-pages.css";
import { spanFilters } from "./request-filters.ts";

const metrics = [
  { value: "first_byte_ms", label: "First byte" },
  { value: "duration_ms", label: "Duration" },
  { value: "tokens_per_second", label: "Speed" },
  { value: "queue_wait_ms", label: "Waited" },
] as const;

const quantileNames = {
  p1: "Slowest 1% below",
  p5: "Slowest 5% below",
  p50: "Median",
  p95: "95% within",
  p99: "99% within",
} as const;
const colours = [1, 7, 0] as const;

/** How long the requests of the last day took, and which failed. Dragging opens the log of that time. */
export function LatencyPage(): JSX.Element {
  const latency = useLatencyQuery();
  const span = (): TimeSpan => lastHours(hours, bucketMinutes, latency.data?.fetchedAt ?? now());
  const bars = createBars(span, () => bucketMinutes * minuteMs);
  const [metric, setMetric] = createSignal<LatencyMetric>("first_byte_ms");
  return (
    <Page title="Latency and failures" help="watching#the-console" sources={[{ name: "Latency", query: latency }]}>
      <SectionTabs section="requests" label="Requests" />
      <Panel
        title="Latency"
        hint={`${hintOf(metric())} · ${bars.name()}`}
        actions={<SegmentedControl label="Latency of" options={metrics} value={metric()} onChange={setMetric} />}
      >
        <ChartLegend items={legendOf(latency.data, metric())} />
        <LatencyChart query={latency} metric={metric()} span={span()} onPlotWidth={bars.setPlotWidth} />
      </Panel>
      <FailuresPanel />
    </Page>
  );
}

function hintOf(metric: LatencyMetric): string {
  if (metric === "duration_ms") return "Last 24 hours, whole requests";
  if (metric === "queue_wait_ms") return "Last 24 hours, requests that waited, until they were sent";
  return metric === "first_byte_ms" ? "Last 24 hours, streamed responses" : "Last 24 hours, output tokens per second";
}

const formatOf = (metric: LatencyMetric): ((value: number) => string) =>
  metric === "tokens_per_second" ? (value) => `${threeDigits(value)}/s` : milliseconds;

/** The quantiles of the whole day. */
function legendOf(latency: Latency | undefined, metric: LatencyMetric): LegendItem[] {
  const total = latency?.totals[0]?.[metric];
  if (total === undefined || total === null) return [];
  return quantilesOf(metric).map((quantile, index) => ({
    label: quantileNames[quantile],
    colour: colours[index] ?? 0,
    value: formatOf(metric)(total[quantile]),
  }));
}

function LatencyChart(props: {
  query: ReturnType<typeof useLatencyQuery>;
  metric: LatencyMetric;
  span: TimeSpan;
  onPlotWidth: (widthPx: number) => void;
}): JSX.Element {
  const navigate = useNavigate();
  const bands = (stepMs: number) =>
    latencyBands(props.query.data?.points ?? [], { span: props.span, stepMs }, props.metric);
  const openLog = (zoom: TimeSpan | undefined): void => {
    if (zoom !== undefined) navigate(requestsHref(spanFilters(zoom)));
  };
  return (
    <Chart
      label={`${metrics.find(({ value }) => value === props.metric)?.label} over time`}
      summary={`${quantilesOf(props.metric)
        .map((quantile) => quantileNames[quantile])
        .join(", ")} of each bar. Zooming opens the request log.`}
      span={props.span}
      onPlotWidth={props.onPlotWidth}
      bucketMs={bucketMinutes * minuteMs}
      kind="bars"
      series={(stepMs) =>
        bands(stepMs).map(({ quantile, heights }, index) => ({
          id: index,
          label: quantileNames[quantile],
          colour: colours[index] ?? 0,
          values: heights,
        }))
      }
      format={formatOf(props.metric)}
      whole={false}
      rows={(_, series, step) => {
        let value = 0;
        return series.flatMap(({ label, colour, values }) => {
          value += values[step] ?? Number.NaN;
          return Number.isNaN(value) ? [] : [{ label, colour, value: formatOf(props.metric)(value) }];
        });
      }}
      onZoom={openLog}
      loaded={props.query.data !== undefined}
      loading={props.query.isPending}
      failure={<NotLoaded query={props.query} />}
      empty={<EmptyState title="Nothing was measured in the last 24 hours" />}
    />
  );
}
