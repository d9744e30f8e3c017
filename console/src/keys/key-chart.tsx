import { useNavigate } from "@solidjs/router";
import { createMemo, createSignal, type JSX } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import type { Series } from "../charts/shapes.ts";
import type { TooltipRow } from "../charts/tooltip.tsx";
import { compact, count } from "../lib/format.ts";
import { dayMs, floorToStep, hourMs, minuteMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { maxDays, type TimeSpan, zoomParameters } from "../lib/time-range.ts";
import { add, valuesInSteps } from "../lib/time-steps.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { createBars } from "../ui/chart-range.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { useUsageBucketsQuery } from "../usage/queries.ts";
import { type BucketsRequest, inSteps, type UsageBuckets } from "../usage/usage-buckets.ts";

const ranges = [
  { value: "2", label: "2 d" },
  { value: "7", label: "7 d" },
  { value: "30", label: "30 d" },
  { value: "365", label: "365 d" },
] as const;
type Range = (typeof ranges)[number]["value"];

/** Input and output tokens of one key, by hour or by day. */
export function KeyChart(props: { keyId: number }): JSX.Element {
  const [range, setRange] = createSignal<Range>("7");
  const tomorrow = createMemo(() => floorToStep(now(), dayMs) + dayMs);
  const days = (): TimeSpan => ({ from: tomorrow() - Number(range()) * dayMs, to: tomorrow() });
  const bucketMs = (): number => (Number(range()) <= 30 ? hourMs : dayMs);
  const request = (metric: "input" | "output") => (): BucketsRequest => ({
    filter: { key: String(props.keyId) },
    by: "key",
    timeRange: { preset: "24h", zoom: days() },
    bucketMinutes: bucketMs() / minuteMs,
    metric,
    top: 1,
    list: 0,
  });
  const input = useUsageBucketsQuery(request("input"), maxDays, () => true);
  const usage = useUsageBucketsQuery(request("output"), maxDays, () => true);
  const span = (): TimeSpan => usage.data?.span ?? days();
  const shownBucketMs = (): number => (usage.data === undefined ? bucketMs() : usage.data.bucketMinutes * minuteMs);
  const bars = createBars(span, shownBucketMs);
  const valuesOf = (buckets: UsageBuckets | undefined, stepMs: number): Float64Array => {
    const values = buckets?.series.get(props.keyId);
    return buckets && values ? inSteps(values, buckets, stepMs) : new Float64Array();
  };
  const series = (stepMs: number) => [
    { id: 0, label: "Input tokens", colour: 7, values: valuesOf(input.data, stepMs) },
    { id: 1, label: "Output tokens", colour: 1, values: valuesOf(usage.data, stepMs) },
  ];
  const navigate = useNavigate();
  const openUsage = (zoom: TimeSpan | undefined): void => {
    const { from, to } = zoomParameters(zoom);
    navigate(`/usage?key=${props.keyId}&from=${from}&to=${to}`);
  };
  return (
    <Panel
      title="Tokens"
      query={usage}
      hint={`Input and output · ${bars.name()}`}
      actions={<SegmentedControl label="Range" options={ranges} value={range()} onChange={setRange} />}
    >
      <p class="chart-total">
        <span>{usage.data === undefined ? "\u00a0" : `${count(usage.data.sums.input)} in`}</span>
        <span>{usage.data === undefined ? "" : `${count(usage.data.sums.output)} out`}</span>
      </p>
      <Chart
        label="Tokens of the key over time"
        summary={`${count(usage.data?.sums.input ?? 0)} input and ${count(usage.data?.sums.output ?? 0)} output tokens. Zooming opens the usage page.`}
        span={span()}
        bucketMs={shownBucketMs()}
        onPlotWidth={bars.setPlotWidth}
        kind="bars"
        series={series}
        format={compact}
        whole
        rows={rowsOf}
        onZoom={openUsage}
        loaded={usage.data !== undefined && input.data !== undefined}
        loading={usage.isPending || usage.isPlaceholderData}
        failure={<NotLoaded query={usage} />}
        empty={<EmptyState title="This key has no tokens in this period" />}
      />
    </Panel>
  );
}

const rowsOf = (_: TimeSpan, drawn: readonly Series[], step: number): TooltipRow[] =>
  drawn.map(({ label, colour, values }) => ({ label, colour, value: count(values[step] || 0) }));

export const shownDays = 30 as const;

interface DailyTokensProps {
  days: readonly { date: string | null; input_tokens: number; output_tokens: number }[];
  now: number;
  whose: "key" | "team" | "user";
  loaded: boolean;
}

/** Input and output tokens on each of the last days, by sums that have nothing finer. */
export function DailyTokens(props: DailyTokensProps): JSX.Element {
  const span = (): TimeSpan => {
    const to = floorToStep(props.now, dayMs) + dayMs;
    return { from: to - shownDays * dayMs, to };
  };
  const days = () => props.days.map((day) => ({ ...day, bucket_start: `${day.date}T00:00:00+09:00` }));
  const total = (field: "input_tokens" | "output_tokens"): string =>
    count(props.days.reduce((sum, day) => sum + day[field], 0));
  const series = (stepMs: number) =>
    (["input_tokens", "output_tokens"] as const).map((field, id) => ({
      id,
      label: id === 0 ? "Input tokens" : "Output tokens",
      colour: id === 0 ? 7 : 1,
      values: valuesInSteps(days(), { span: span(), stepMs }, (day) => day[field], add),
    }));
  return (
    <Chart
      label="Tokens by day"
      summary={`${total("input_tokens")} input and ${total("output_tokens")} output tokens in ${shownDays} days.`}
      span={span()}
      bucketMs={dayMs}
      kind="bars"
      series={series}
      format={compact}
      whole
      rows={rowsOf}
      loaded={props.loaded}
      loading={!props.loaded}
      empty={
        <EmptyState
          title={`${props.whose === "user" ? "Your keys have" : `This ${props.whose} has`} no tokens in ${shownDays} days`}
        />
      }
    />
  );
}
