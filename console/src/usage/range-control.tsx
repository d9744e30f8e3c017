import { createSignal, For, type JSX, Show, untrack } from "solid-js";
import { dayMs, floorToStep, parseSeoulMinute, seoulDay } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { maxDays, presetLabel, type RangePreset, type TimeSpan } from "../lib/time-range.ts";
import type { TimeRangeState } from "../lib/use-time-range.ts";
import { Button, InputField, SegmentedControl } from "../ui/controls.tsx";
import { Dialog, FormEnd } from "../ui/dialog.tsx";

const optionsOf = (presets: readonly RangePreset[]) => presets.map((value) => ({ value, label: presetLabel(value) }));
const barOptions = optionsOf(["month", "last-month", "24h", "7d", "30d"]);
const dialogOptions = optionsOf(["today", "yesterday", "90d", "365d"]);

/** The time range of the usage page: months, the last hours and days, or any days. @param props.span that is shown */
export function RangeControl(props: { range: TimeRangeState; span: TimeSpan }): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const chosenPreset = (): RangePreset | undefined => {
    const { preset, zoom } = props.range.chosen();
    return zoom === undefined ? preset : undefined;
  };
  const daysLabel = (): string => {
    const { preset, zoom } = props.range.chosen();
    if (zoom !== undefined) return isWholeDays(zoom) ? daysOf(zoom) : "Days";
    return barOptions.some(({ value }) => value === preset) ? "Days" : presetLabel(preset);
  };
  return (
    <>
      <SegmentedControl
        label="Range"
        options={barOptions}
        // While other days are shown, none of them is chosen.
        value={chosenPreset() ?? "today"}
        onChange={(preset) => props.range.setPreset(preset)}
      />
      <Button
        icon="calendar"
        aria-haspopup="dialog"
        aria-pressed={daysLabel() !== "Days"}
        onClick={() => setOpen(true)}
      >
        {daysLabel()}
      </Button>
      <Show when={isOpen()}>
        <DaysDialog
          span={props.span}
          preset={chosenPreset()}
          onPreset={(preset) => props.range.setPreset(preset)}
          onDays={(span) => props.range.setZoom(span)}
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
  const Day = (day: { label: string; value: string; onText: (text: string) => void }): JSX.Element => (
    <InputField {...day} hint={`${earliest()} to ${latest()}`} type="date" required min={earliest()} max={latest()} />
  );
  return (
    <Dialog title="Choose days" onClose={() => props.onClose()}>
      <p class="hint">Days in Seoul time (KST, UTC+9), in any time zone of the console.</p>
      <div class="actions">
        <For each={dialogOptions}>
          {({ value, label }) => (
            <Button aria-pressed={props.preset === value} onClick={() => choose(value)}>
              {label}
            </Button>
          )}
        </For>
      </div>
      <form novalidate onSubmit={submit}>
        <div class="day-fields">
          <Day label="First day" value={first()} onText={setFirst} />
          <Day label="Last day" value={last()} onText={setLast} />
        </div>
        <p class="form-error" role="alert">
          <Show when={problem()}>{(text) => <>{text()}.</>}</Show>
        </p>
        <FormEnd action="Show" disabled={problem() !== undefined} onCancel={props.onClose} />
      </form>
    </Dialog>
  );
}
