import { createSignal, For, type JSX, Show, untrack } from "solid-js";
import { count } from "../lib/format.ts";
import { Choice, InputField, LabelledSelect, TextField } from "../ui/controls.tsx";
import { limitKinds, type LimitName, limitNames, priorities, type Priority } from "../../../src/domain/limits.ts";
import { calendarLimits, limitHint, limitLabels, limitOf, listOf } from "./key-limits.ts";

type Amounts = Partial<Record<LimitName, number>>;
export type Limits = Partial<Record<LimitName, number | null>> & { priority?: Priority | null };

interface LimitFieldsProps {
  /** Undefined for a new one. */
  of: (Readonly<Limits> & { readonly limits_extra?: Amounts | null }) | undefined;
  onChange: (changed: Limits) => void;
  /** Called with all that is added until windows end; null if nothing is. Without it, no field asks. */
  onExtra?: ((extra: Amounts | null) => void) | undefined;
  /** Beside the limits that are folded away. */
  more?: JSX.Element;
  /** Beside the others. */
  children?: JSX.Element;
}

const usualLimits: ReadonlySet<LimitName> = new Set(["max_concurrency", "tokens_per_day", "tokens_per_month"]);

/** The usual limits and those that are set; the others are folded away. */
export function LimitFields(props: LimitFieldsProps): JSX.Element {
  const isShown = (name: LimitName): boolean => usualLimits.has(name) || (props.of?.[name] ?? null) !== null;
  // A field stays where it was, whatever somebody else sets meanwhile.
  const shown = untrack(() => limitNames.filter(isShown));
  const folded = limitNames.filter((name) => !shown.includes(name));
  const fieldOf = (name: LimitName): JSX.Element => (
    <AmountField
      label={limitLabels[name]}
      name={name}
      value={props.of?.[name] ?? null}
      onChange={(limit) => props.onChange({ [name]: limit })}
    />
  );
  return (
    <>
      <div class="limit-fields">
        <For each={shown}>{fieldOf}</For>
        {props.children}
      </div>
      <details>
        <summary>More limits</summary>
        <div class="limit-fields">
          <For each={folded}>{fieldOf}</For>
          <PriorityField value={props.of?.priority ?? null} onChange={(priority) => props.onChange({ priority })} />
          {props.more}
        </div>
      </details>
      <Show when={props.onExtra}>{(onExtra) => <ExtraFields of={props.of} onExtra={onExtra()} />}</Show>
    </>
  );
}

const PriorityField = (props: {
  value: Priority | null;
  onChange: (priority: Priority | null) => void;
}): JSX.Element => (
  <LabelledSelect
    label="Where requests wait"
    class="field"
    options={priorities.map((value) => ({ value, label: priorityLabels[value] }))}
    value={props.value ?? "normal"}
    onChange={(chosen) => props.onChange(chosen === "normal" ? null : chosen)}
  />
);

const priorityLabels: Readonly<Record<Priority, string>> = {
  high: "Before others: high priority",
  normal: "In turn: normal priority",
  low: "Behind others, up to an hour: low priority",
};

/** Of the limits by the calendar that are set. */
function ExtraFields(props: {
  of: LimitFieldsProps["of"];
  onExtra: NonNullable<LimitFieldsProps["onExtra"]>;
}): JSX.Element {
  const before = untrack(() => props.of?.limits_extra) ?? {};
  const [extra, setExtra] = createSignal(before);
  const names = calendarLimits.filter((name) => untrack(() => (props.of?.[name] ?? null) !== null));
  const change = (name: LimitName, amount: number | null): void => {
    const { [name]: _, ...others } = extra();
    const all = setExtra(amount === null ? others : { ...others, [name]: amount });
    props.onExtra(Object.keys(all).length === 0 ? null : all);
  };
  return (
    <Show when={names.length > 0}>
      <div class="limit-fields">
        <For each={names}>
          {(name) => (
            <AmountField
              label={`More until the ${limitKinds[name].window} ends`}
              name={name}
              value={before[name] ?? null}
              none="Nothing more"
              onChange={(amount) => change(name, amount)}
            />
          )}
        </For>
      </div>
    </Show>
  );
}

/** An amount of what a limit counts; null if it is empty. */
function AmountField(props: {
  label: string;
  name: LimitName;
  value: number | null;
  /** What an empty field means, if it is no limit. */
  none?: string;
  onChange: (amount: number | null) => void;
}): JSX.Element {
  const stored = (): string => (props.value === null ? "" : count(props.value));
  const [text, setText] = createSignal(stored());
  const hint = (): string => limitHint(props.name, text(), props.none);
  const change = (field: HTMLInputElement): void => {
    setText(field.value);
    const limit = limitOf(field.value);
    // The form is not sent then.
    field.setCustomValidity(limit === undefined ? hint() : "");
    if (limit !== undefined) props.onChange(limit);
  };
  return (
    <InputField
      label={props.label}
      hint={hint()}
      spellcheck={false}
      value={stored()}
      onInput={(event) => change(event.currentTarget)}
      // The browser cannot show what is wrong with a field that is folded away.
      onInvalid={(event) => event.currentTarget.closest("details")?.setAttribute("open", "")}
    />
  );
}

export const NotifyField = (props: {
  of: { readonly notify?: boolean } | undefined;
  onChange: (changed: { notify: boolean }) => void;
}): JSX.Element => (
  <Choice
    label="Tell NOTICE_URL at 75, 95 and 100 %"
    value={props.of?.notify === true}
    onChange={(notify) => props.onChange({ notify })}
  />
);

interface Notes {
  note?: string | null;
  tags?: readonly string[];
}

/** What an operator notes of a key or a team. */
export const NoteFields = (props: {
  of: Notes | undefined;
  noteHint: string;
  onChange: (changed: { note?: string | null; tags?: string[] | null }) => void;
}): JSX.Element => (
  <>
    <TextField label="Note" hint={props.noteHint}>
      {(ids) => (
        <textarea
          {...ids}
          rows="2"
          maxlength="2000"
          value={props.of?.note ?? ""}
          onInput={(event) => props.onChange({ note: event.currentTarget.value.trim() || null })}
        />
      )}
    </TextField>
    <InputField
      label="Tags"
      hint="Up to 10, separated by commas."
      value={props.of?.tags?.join(", ") ?? ""}
      onText={(text) => props.onChange({ tags: listOf(text) })}
    />
  </>
);
