import { createSignal, type JSX, Match, Show, Switch } from "solid-js";
import { bucketName } from "../lib/format.ts";
import { spanLabel, zonedClockLabel } from "../lib/time-labels.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { barStep, presetLabel, presetOptions, type TimeRange, type TimeSpan } from "../lib/time-range.ts";
import type { TimeRangeState } from "../lib/use-time-range.ts";
import { Button, SegmentedControl } from "./controls.tsx";

/** What a chart's bars sum up, as `15-minute bars`: on a narrow screen, several buckets are one bar. */
export function createBars(
  span: () => TimeSpan,
  bucketMs: () => number,
): { name: () => string; setPlotWidth: (widthPx: number) => void } {
  const [plotWidthPx, setPlotWidth] = createSignal<number>();
  const stepMs = (): number => {
    const widthPx = plotWidthPx();
    return widthPx === undefined ? bucketMs() : barStep(span(), bucketMs(), widthPx);
  };
  return { name: () => `${bucketName(stepMs() / minuteMs)} bars`, setPlotWidth };
}

/** The time range of a panel with charts: the last hours or days, and the way back from a zoom. */
export const PresetControl = (props: { state: TimeRangeState }): JSX.Element => (
  <>
    <ResetZoom state={props.state} />
    <SegmentedControl
      label="Range"
      options={presetOptions}
      value={props.state.chosen().preset}
      onChange={(preset) => props.state.setPreset(preset)}
    />
  </>
);

export const ResetZoom = (props: { state: Pick<TimeRangeState, "chosen" | "setZoom"> }): JSX.Element => (
  <Show when={props.state.chosen().zoom}>
    <Button onClick={() => props.state.setZoom(undefined)}>Reset zoom</Button>
  </Show>
);

/** The range of the data that a panel shows, beside the one that is chosen. */
interface ShownRange {
  chosen: () => TimeRange;
  /** Undefined before the first response. */
  range: () => TimeRange | undefined;
  span: () => TimeSpan;
  barMinutes: () => number;
  fetchedAt: () => number | undefined;
  isLoading: () => boolean;
  query: { readonly isError: boolean };
}

/** The range of the chart. If it is not the chosen one, also which one loads or that it could not be loaded. */
export function RangeHint(props: { shown: ShownRange; unit?: string }): JSX.Element {
  const chosenName = (): string => {
    const { preset, zoom } = props.shown.chosen();
    return zoom === undefined ? presetLabel(preset) : "the zoom";
  };
  const loadsRange = (): boolean => JSON.stringify(props.shown.range()) !== JSON.stringify(props.shown.chosen());
  const label = (): string => {
    const { from, to } = props.shown.span();
    return `${spanLabel(from, to)} · ${bucketName(props.shown.barMinutes())} ${props.unit ?? "bars"}`;
  };
  return (
    <Show when={props.shown.range()} fallback={props.shown.isLoading() && "Loading…"}>
      {label()}
      <Switch>
        <Match when={props.shown.isLoading()}> · loading{loadsRange() ? ` ${chosenName()}` : ""}…</Match>
        <Match when={props.shown.query.isError}> · loaded {zonedClockLabel(props.shown.fetchedAt() ?? 0)}</Match>
      </Switch>
    </Show>
  );
}
