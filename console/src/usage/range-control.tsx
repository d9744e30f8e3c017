import { createSignal, type JSX, Show } from "solid-js";
import { dayMs, floorToStep, seoulDay } from "../lib/seoul-time.ts";
import { calendarOptions, presetLabel, type RangePreset, rollingOptions, type TimeSpan } from "../lib/time-range.ts";
import type { UsageHistoryState } from "./use-key-usage.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { DaysDialog } from "./days-dialog.tsx";
import { Icon } from "../ui/icon.tsx";

/** The time range of the usage page: the last hours and days, or days of the calendar. */
export function RangeControl(props: { history: UsageHistoryState }): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const chosenPreset = (): RangePreset | undefined => {
    const { preset, zoom } = props.history.chosen();
    return zoom === undefined ? preset : undefined;
  };
  const daysLabel = (): string => {
    const { preset, zoom } = props.history.chosen();
    if (zoom !== undefined) return isWholeDays(zoom) ? daysOf(zoom) : "Days";
    return calendarOptions.some(({ value }) => value === preset) ? presetLabel(preset) : "Days";
  };
  return (
    <>
      <SegmentedControl
        label="Range"
        options={rollingOptions}
        value={props.history.chosen().preset}
        onChange={(preset) => props.history.setPreset(preset)}
      />
      <button
        class="button"
        type="button"
        aria-haspopup="dialog"
        aria-pressed={daysLabel() !== "Days"}
        onClick={() => setOpen(true)}
      >
        <Icon name="calendar" />
        {daysLabel()}
      </button>
      <Show when={isOpen()}>
        <DaysDialog
          span={props.history.span()}
          preset={chosenPreset()}
          onPreset={(preset) => props.history.setPreset(preset)}
          onDays={(span) => props.history.setZoom(span)}
          onClose={() => setOpen(false)}
        />
      </Show>
    </>
  );
}

const isWholeDays = ({ from, to }: TimeSpan): boolean =>
  floorToStep(from, dayMs) === from && floorToStep(to, dayMs) === to;

/** As in the daily table: Seoul's days in any zone. */
function daysOf({ from, to }: TimeSpan): string {
  const [first, last] = [seoulDay(from), seoulDay(to - 1)];
  return first === last ? first : `${first} – ${last}`;
}
