import { type JSX, Show } from "solid-js";
import { presetOptions } from "../lib/time-range.ts";
import type { TimeRangeState } from "../lib/use-time-range.ts";
import { SegmentedControl } from "./controls.tsx";

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
    <button class="button" type="button" onClick={() => props.state.setZoom(undefined)}>
      Reset zoom
    </button>
  </Show>
);
