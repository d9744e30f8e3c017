import { createUniqueId, For, type JSX, Show, splitProps } from "solid-js";
import { downloadCsv } from "../lib/csv.ts";
import { Icon, type IconName } from "./icon.tsx";

interface SegmentedProps<T extends string> {
  label: string;
  options: readonly { value: T; label: string; icon?: IconName }[];
  value: T;
  onChange: (value: T) => void;
}

/** A choice of a few options. Radio buttons, so that the arrow keys work as usual. */
export function SegmentedControl<T extends string>(props: SegmentedProps<T>): JSX.Element {
  const name = createUniqueId();
  return (
    <fieldset class="segmented">
      <legend class="visually-hidden">{props.label}</legend>
      <For each={props.options}>
        {(option) => (
          <label title={option.icon === undefined ? undefined : option.label}>
            <input
              type="radio"
              name={name}
              value={option.value}
              checked={props.value === option.value}
              onChange={() => props.onChange(option.value)}
            />
            <Show when={option.icon} fallback={<span>{option.label}</span>}>
              {(icon) => (
                <>
                  <Icon name={icon()} />
                  <span class="visually-hidden">{option.label}</span>
                </>
              )}
            </Show>
          </label>
        )}
      </For>
    </fieldset>
  );
}

interface ButtonProps extends Omit<JSX.ButtonHTMLAttributes<HTMLButtonElement>, "class" | "classList"> {
  tone?: "primary" | "danger" | "busy" | "near" | false | undefined;
  icon?: IconName;
}

const classOf = (name: string, tone: ButtonProps["tone"]): string => (tone ? `${name} ${tone}` : name);

/** It submits no form, unless it says so. */
export function Button(props: ButtonProps): JSX.Element {
  const [own, rest] = splitProps(props, ["tone", "icon", "children"]);
  return (
    <button class={classOf("button", own.tone)} type="button" {...rest}>
      <Show when={own.icon}>{(icon) => <Icon name={icon()} />}</Show>
      {own.children}
    </button>
  );
}

/** A button without a text. @param props.label what it is called */
export function IconButton(props: ButtonProps & { icon: IconName; label: string }): JSX.Element {
  const [own, rest] = splitProps(props, ["icon", "label", "tone"]);
  return (
    <button class={classOf("icon-button", own.tone)} type="button" aria-label={own.label} {...rest}>
      <Icon name={own.icon} />
    </button>
  );
}

/** A search field. @param props.isFirst of a dialog: it takes the focus */
export function FilterField(props: {
  label: string;
  value: string;
  isFirst?: boolean;
  onInput: (text: string) => void;
}): JSX.Element {
  return (
    <label class="filter">
      <Icon name="search" />
      <span class="visually-hidden">{props.label}</span>
      <input
        type="search"
        placeholder={props.label}
        value={props.value}
        autofocus={props.isFirst}
        autocomplete="off"
        spellcheck={false}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
    </label>
  );
}

/** @param props.text is asked for when it is clicked */
export function CsvButton(props: {
  disabled: boolean;
  fileName: string;
  text: () => string | Promise<string>;
}): JSX.Element {
  const save = async (): Promise<void> => {
    const { fileName, text } = props;
    downloadCsv(fileName, await text());
  };
  return (
    <Button icon="download" disabled={props.disabled} onClick={() => void save()}>
      CSV
    </Button>
  );
}

/** @param props.label the state, not the effect of a click: `alpha is active` */
export function ToggleSwitch(props: { label: string; on: boolean; onChange: (on: boolean) => void }): JSX.Element {
  return (
    <button
      class="switch"
      type="button"
      role="switch"
      aria-checked={props.on}
      aria-label={props.label}
      onClick={() => props.onChange(!props.on)}
    />
  );
}

interface FieldIds {
  id: string;
  "aria-describedby": string;
}

/** A text field with a label above and a hint below; the hint is not part of its accessible name. */
export function TextField(props: {
  label: string;
  hint: string;
  children: (ids: FieldIds) => JSX.Element;
}): JSX.Element {
  const id = createUniqueId();
  return (
    <div class="field">
      <label for={id}>{props.label}</label>
      {props.children({ id, "aria-describedby": `${id}-hint` })}
      <small id={`${id}-hint`}>{props.hint}</small>
    </div>
  );
}

type InputProps = JSX.InputHTMLAttributes<HTMLInputElement> & {
  label: string;
  /** Called with what is typed. */
  onText?: (text: string) => void;
};

function Input(props: Omit<InputProps, "label">): JSX.Element {
  const [own, rest] = splitProps(props, ["onText"]);
  return <input autocomplete="off" onInput={(event) => own.onText?.(event.currentTarget.value)} {...rest} />;
}

/** A `TextField` with an input; other attributes are the input's. */
export function InputField(props: InputProps & { hint: string }): JSX.Element {
  const [own, rest] = splitProps(props, ["label", "hint"]);
  return <TextField {...own}>{(ids) => <Input {...ids} {...rest} />}</TextField>;
}

/** An input with a label above; other attributes are the input's. @param props.class of the label */
export function LabelledInput(props: InputProps): JSX.Element {
  const [own, rest] = splitProps(props, ["label", "class"]);
  return (
    <label class={own.class ?? "filter-field"}>
      <span>{own.label}</span>
      <Input {...rest} />
    </label>
  );
}

type SelectProps<T extends string> = Omit<JSX.SelectHTMLAttributes<HTMLSelectElement>, "onChange"> & {
  options: readonly { value: T; label: string }[];
  value: T;
  onChange?: (value: T) => void;
};

export function Select<T extends string>(props: SelectProps<T>): JSX.Element {
  const [own, rest] = splitProps(props, ["options", "value", "onChange"]);
  return (
    <select {...rest} onChange={(event) => own.onChange?.(event.currentTarget.value as T)}>
      <For each={own.options}>
        {({ value, label }) => (
          <option value={value} selected={value === own.value}>
            {label}
          </option>
        )}
      </For>
    </select>
  );
}

/** See `LabelledInput`. */
export function LabelledSelect<T extends string>(props: SelectProps<T> & { label: string }): JSX.Element {
  const [own, rest] = splitProps(props, ["label", "class"]);
  return (
    <label class={own.class ?? "filter-field"}>
      <span>{own.label}</span>
      <Select {...rest} />
    </label>
  );
}

/** A checkbox with its label. */
export const Choice = (props: { label: string; value: boolean; onChange: (value: boolean) => void }): JSX.Element => (
  <label class="choice">
    <input type="checkbox" checked={props.value} onChange={(event) => props.onChange(event.currentTarget.checked)} />
    {props.label}
  </label>
);
