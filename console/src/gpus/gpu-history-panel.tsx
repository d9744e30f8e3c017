import { For, type JSX } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import type { TooltipRow } from "../charts/tooltip.tsx";
import { compact, watts } from "../lib/format.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { spanLabel } from "../lib/time-labels.ts";
import { PresetControl, RangeHint } from "../ui/chart-range.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import type { GpuMeasure } from "./gpu-history.ts";
import type { GpuHistoryState } from "./use-gpu-history.ts";

interface Measure {
  name: GpuMeasure;
  label: string;
  colour: number;
  /** What a value is divided by, so that the axis has round values. */
  divisor?: number;
  format: (value: number) => string;
}

const measures: readonly Measure[] = [
  { name: "power_draw_w", label: "Power", colour: 3, format: watts },
  { name: "utilization_pct", label: "Utilisation", colour: 1, format: (value) => `${Math.round(value)}%` },
  { name: "memory_used_mb", label: "Memory", colour: 4, divisor: 1024, format: (value) => `${compact(value)} GiB` },
  { name: "temp_c", label: "Temperature", colour: 6, format: (value) => `${Math.round(value)} °C` },
];

/** A chart for each measure, on one time axis. */
export function GpuHistoryPanel(props: { state: GpuHistoryState }): JSX.Element {
  return (
    <Panel
      title="History"
      hint={<RangeHint shown={props.state} unit="means" />}
      actions={<PresetControl state={props.state} />}
    >
      <div class="gpu-charts">
        <For each={measures}>
          {(measure) => (
            <div>
              <h3 class="chart-title">{measure.label}</h3>
              <MeasureChart measure={measure} state={props.state} />
            </div>
          )}
        </For>
      </div>
    </Panel>
  );
}

/** The mean as a line; the highest value is in the tooltip. */
function MeasureChart(props: { measure: Measure; state: GpuHistoryState }): JSX.Element {
  const bucketMs = (): number => props.state.bucketMinutes() * minuteMs;
  const scaled = (values: Float64Array): Float64Array => values.map((value) => value / (props.measure.divisor ?? 1));
  const meanIn = (stepMs: number): Float64Array => scaled(props.state.stepsOf(props.measure.name, stepMs).mean);
  const highestIn = (stepMs: number): Float64Array => scaled(props.state.stepsOf(props.measure.name, stepMs).highest);
  const highest = (): number => highestIn(bucketMs()).reduce((most, value) => (value > most ? value : most), 0);
  const rows = (mean: number, most: number): TooltipRow[] =>
    Number.isNaN(mean)
      ? []
      : [
          { label: "Mean", colour: props.measure.colour, value: props.measure.format(mean) },
          { label: "Highest", colour: -1, value: props.measure.format(most) },
        ];
  return (
    <Chart
      label={`${props.measure.label} over time`}
      summary={`Highest ${props.measure.format(highest())}, ${spanLabel(props.state.span().from, props.state.span().to)}.`}
      span={props.state.span()}
      bucketMs={bucketMs()}
      kind="line"
      series={(stepMs) => [
        {
          id: 1,
          label: props.measure.label,
          colour: props.measure.colour,
          values: meanIn(stepMs),
        },
      ]}
      format={props.measure.format}
      whole={false}
      rows={(at, [drawn], step) =>
        rows(drawn?.values[step] ?? Number.NaN, highestIn(at.to - at.from)[step] ?? Number.NaN)
      }
      onZoom={(zoom) => props.state.setZoom(zoom)}
      zoomed={props.state.chosen().zoom !== undefined}
      loaded={props.state.data() !== undefined}
      loading={props.state.isLoading()}
      failure={<NotLoaded query={props.state.query} />}
      onPlotWidth={props.state.setPlotWidth}
      empty={<EmptyState title="No readings in this period" />}
    />
  );
}
