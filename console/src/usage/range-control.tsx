import { createSignal, For, type JSX, Show, untrack } from "solid-js";
import { dayMs, floorToStep, parseSeoulMinute, seoulDay } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import {
  calendarOptions,
  maxDays,
  presetLabel,
  type RangePreset,
  rollingOptions,
  type TimeSpan,
} from "../lib/time-range.ts";
import { SegmentedControl, TextField } from "../ui/controls.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import type { KeyUsageState } from "./use-key-usage.ts";

/** The time range of the usage page: the last hours and days, or days of the calendar. */
export function RangeControl(props: { usage: KeyUsageState }): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const chosenPreset = (): RangePreset | undefined => {
    const { preset, zoom } = props.usage.chosen();
    return zoom === undefined ? preset : undefined;
  };
  const daysLabel = (): string => {
    const { preset, zoom } = props.usage.chosen();
    if (zoom !== undefined) return isWholeDays(zoom) ? daysOf(zoom) : "Days";
    return calendarOptions.some(({ value }) => value === preset) ? presetLabel(preset) : "Days";
  };
  return (
    <>
      <SegmentedControl
        label="Range"
        options={rollingOptions}
        value={props.usage.chosen().preset}
        onChange={(preset) => props.usage.setPreset(preset)}
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
          span={props.usage.span()}
          preset={chosenPreset()}
          onPreset={(preset) => props.usage.setPreset(preset)}
          onDays={(span) => props.usage.setZoom(span)}
          onClose={() => setOpen(false)}
        />
      </Show>
    </>
  );
}

const isWholeDays = ({ from, to }: TimeSpan): boolean =>
  floorToStep(from, dayMs) === from && floorToStep(to, dayMs) === to;

/** Days are Seoul's in any zone, as in the daily table. */
function daysOf({ from, to }: TimeSpan): string {
  const [first, last] = [seoulDay(from), seoulDay(to - 1)];
  return first === last ? first : `${first} – ${last}`;
}

interface DaysDialogProps {
  /** The span that the chart shows. */
  span: TimeSpan;
  /** Undefined if the chart shows other days than a preset's. */
  preset: RangePreset | undefined;
  onPreset: (preset: RangePreset) => void;
  onDays: (span: TimeSpan) => void;
  onClose: () => void;
}

/** Chooses whole days of the last year. */
function DaysDialog(props: DaysDialogProps): JSX.Element {
  const [first, setFirst] = createSignal(untrack(() => seoulDay(props.span.from)));
  const [last, setLast] = createSignal(untrack(() => seoulDay(props.span.to - 1)));
  const earliest = (): string => seoulDay(now() - maxDays * dayMs);
  const latest = (): string => seoulDay(now());
  const problem = (): string | undefined => {
    if (first() === "" || last() === "") return "Choose both days";
    if (first() > last()) return "The first day is after the last";
    if (first() < earliest() || last() > latest()) return `Days from ${earliest()} to ${latest()} can be shown`;
    return undefined;
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const [from, to] = [parseSeoulMinute(`${first()}T00:00`), parseSeoulMinute(`${last()}T00:00`)];
    if (problem() !== undefined || from === undefined || to === undefined) return;
    props.onDays({ from, to: to + dayMs });
    props.onClose();
  };
  const choose = (preset: RangePreset): void => {
    props.onPreset(preset);
    props.onClose();
  };
  return (
    <Dialog title="Choose days" onClose={() => props.onClose()}>
      <p class="hint">Days in Seoul time (KST, UTC+9), in any time zone of the console.</p>
      <div class="actions">
        <For each={calendarOptions}>
          {({ value, label }) => (
            <button class="button" type="button" aria-pressed={props.preset === value} onClick={() => choose(value)}>
              {label}
            </button>
          )}
        </For>
      </div>
      <form novalidate onSubmit={submit}>
        <div class="day-fields">
          <DayField label="First day" value={first()} range={[earliest(), latest()]} onInput={setFirst} />
          <DayField label="Last day" value={last()} range={[earliest(), latest()]} onInput={setLast} />
        </div>
        <p class="form-error" role="alert">
          <Show when={problem()}>{(text) => <>{text()}.</>}</Show>
        </p>
        <div class="dialog-actions">
          <button class="button" type="button" onClick={() => props.onClose()}>
            Cancel
          </button>
          <button class="button primary" type="submit" disabled={problem() !== undefined}>
            Show
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function DayField(props: {
  label: string;
  value: string;
  range: [min: string, max: string];
  onInput: (day: string) => void;
}): JSX.Element {
  return (
    <TextField label={props.label} hint={`${props.range[0]} to ${props.range[1]}`}>
      {(ids) => (
        <input
          {...ids}
          type="date"
          required
          min={props.range[0]}
          max={props.range[1]}
          value={props.value}
          onInput={(event) => props.onInput(event.currentTarget.value)}
        />
      )}
    </TextField>
  );
}
