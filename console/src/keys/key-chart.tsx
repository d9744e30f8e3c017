import { useNavigate } from "@solidjs/router";
import { createSignal, type JSX } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import { compact, count } from "../lib/format.ts";
import { dayMs, floorToStep, hourMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { type TimeSpan, zoomParameters } from "../lib/time-range.ts";
import { add, valuesInSteps } from "../lib/time-steps.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { createBars } from "../ui/chart-range.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { type ModelUsageRow, useModelUsageQuery } from "../usage/queries.ts";

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
  const days = (): number => Number(range());
  const bucketMs = (): number => (days() <= 30 ? hourMs : dayMs);
  const usage = useModelUsageQuery(() => ({
    days: days(),
    by: "key",
    bucket: bucketMs() === hourMs ? "hour" : "day",
    keyId: props.keyId,
  }));
  const span = (): TimeSpan => {
    const to = floorToStep(usage.data?.fetchedAt ?? now(), dayMs) + dayMs;
    return { from: to - (usage.data?.days ?? days()) * dayMs, to };
  };
  const shownBucketMs = (): number => (usage.data?.bucket === "day" ? dayMs : hourMs);
  const bars = createBars(span, shownBucketMs);
  const rows = (): ModelUsageRow[] => usage.data?.rows ?? [];
  const total = (field: "input_tokens" | "output_tokens"): number => rows().reduce((sum, row) => sum + row[field], 0);
  const series = (stepMs: number) =>
    (["input_tokens", "output_tokens"] as const).map((field, id) => ({
      id,
      label: field === "input_tokens" ? "Input tokens" : "Output tokens",
      colour: id === 0 ? 7 : 1,
      values: valuesInSteps(rows(), { span: span(), stepMs }, (row) => row[field], add),
    }));
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
        <span>{usage.data === undefined ? "\u00a0" : `${count(total("input_tokens"))} in`}</span>
        <span>{usage.data === undefined ? "" : `${count(total("output_tokens"))} out`}</span>
      </p>
      <Chart
        label="Tokens of the key over time"
        summary={`${count(total("input_tokens"))} input and ${count(total("output_tokens"))} output tokens. Zooming opens the usage page.`}
        span={span()}
        bucketMs={shownBucketMs()}
        onPlotWidth={bars.setPlotWidth}
        kind="bars"
        series={series}
        format={compact}
        whole
        rows={(_, drawn, step) =>
          drawn.map(({ label, colour, values }) => ({ label, colour, value: count(values[step] || 0) }))
        }
        onZoom={openUsage}
        zoomed={false}
        pans={false}
        loaded={usage.data !== undefined}
        loading={usage.isPending || usage.isPlaceholderData}
        failure={<NotLoaded query={usage} />}
        empty={<EmptyState title="This key has no tokens in this period" />}
      />
    </Panel>
  );
}
