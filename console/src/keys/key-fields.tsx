import { createSignal, For, type JSX, Show, untrack } from "solid-js";
import { count } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { fieldTime, parseFieldTime, zoneName } from "../lib/time-zone.ts";
import { type Key, useTeamsQuery } from "../queries.ts";
import { TextField } from "../ui/controls.tsx";
import { limitKinds, type LimitName, limitNames } from "../../../src/domain/limits.ts";
import { calendarLimits, limitHint, limitLabels, limitOf, listOf } from "./key-limits.ts";
import type { KeyFields } from "./key-mutations.ts";

/** What a form begins with. */
export type EditedKey = Partial<Key>;

interface KeyFieldsProps {
  /** Undefined for a new key. */
  key?: EditedKey | undefined;
  /** Called with what the user changed; null clears a field. */
  onChange: (changed: KeyFields) => void;
}

/** The fields of a form for what a key may take, and what it is for. */
export const KeyFieldInputs = (props: KeyFieldsProps): JSX.Element => (
  <>
    <div class="limit-fields">
      <For each={limitNames}>{(name) => <LimitField {...props} name={name} />}</For>
      <ScopeField {...props} />
      <TeamField {...props} />
    </div>
    <ExtraFields {...props} />
    <ModelsField {...props} />
    <PathsField value={props.key?.allowed_paths ?? null} onChange={props.onChange} />
    <ExpiryField {...props} />
    <TextFields {...props} />
  </>
);

export const LimitField = (props: KeyFieldsProps & { name: LimitName }): JSX.Element => (
  <AmountField
    label={limitLabels[props.name]}
    name={props.name}
    value={props.key?.[props.name] ?? null}
    onChange={(limit) => props.onChange({ [props.name]: limit })}
  />
);

/** Of the limits by the calendar that a key has. */
function ExtraFields(props: KeyFieldsProps): JSX.Element {
  const before = untrack(() => props.key?.limits_extra) ?? {};
  const [extra, setExtra] = createSignal(before);
  const names = calendarLimits.filter((name) => untrack(() => props.key?.id !== undefined && props.key[name] !== null));
  const change = (name: LimitName, amount: number | null): void => {
    const { [name]: _, ...others } = extra();
    const all = setExtra(amount === null ? others : { ...others, [name]: amount });
    props.onChange({ limits_extra: Object.keys(all).length === 0 ? null : all });
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
    <TextField label={props.label} hint={hint()}>
      {(ids) => (
        <input
          {...ids}
          autocomplete="off"
          spellcheck={false}
          value={stored()}
          onInput={(event) => change(event.currentTarget)}
        />
      )}
    </TextField>
  );
}

/** What a key may be used for. */
export const scopes = [
  { value: "all", label: "Everything" },
  { value: "inference", label: "Inference only" },
  { value: "gpu", label: "GPU samples only" },
] as const;

const ScopeField = (props: KeyFieldsProps): JSX.Element => (
  <label class="field">
    <span>May be used for</span>
    <select
      onChange={(event) =>
        props.onChange({ scope: scopes.find(({ value }) => value === event.currentTarget.value)?.value ?? "all" })
      }
    >
      <For each={scopes}>
        {({ value, label }) => (
          <option value={value} selected={value === (props.key?.scope ?? "all")}>
            {label}
          </option>
        )}
      </For>
    </select>
  </label>
);

/** Nothing while there are no teams. */
export function TeamField(props: KeyFieldsProps): JSX.Element {
  const teams = useTeamsQuery();
  return (
    <Show when={teams.data !== undefined && teams.data.length > 0}>
      <label class="field">
        <span>Team</span>
        <select onChange={(event) => props.onChange({ team_id: Number(event.currentTarget.value) || null })}>
          <option value="">None</option>
          <For each={teams.data}>
            {({ id, name }) => (
              <option value={id} selected={id === props.key?.team_id}>
                {name}
              </option>
            )}
          </For>
        </select>
      </label>
    </Show>
  );
}

export const ModelsField = (props: KeyFieldsProps): JSX.Element => (
  <TextField label="Allowed models" hint="Names or prefixes such as qwen*, separated by commas. Empty: all.">
    {(ids) => (
      <input
        {...ids}
        autocomplete="off"
        spellcheck={false}
        value={props.key?.allowed_models?.join(", ") ?? ""}
        onInput={(event) => props.onChange({ allowed_models: listOf(event.currentTarget.value) })}
      />
    )}
  </TextField>
);

export const PathsField = (props: {
  value: readonly string[] | null;
  onChange: (changed: Pick<KeyFields, "allowed_paths">) => void;
}): JSX.Element => (
  <TextField label="Allowed paths" hint="Such as /v1/chat/*, /v1/models, separated by commas. Empty: all.">
    {(ids) => (
      <input
        {...ids}
        autocomplete="off"
        spellcheck={false}
        value={props.value?.join(", ") ?? ""}
        onInput={(event) => props.onChange({ allowed_paths: listOf(event.currentTarget.value) })}
      />
    )}
  </TextField>
);

function ExpiryField(props: KeyFieldsProps): JSX.Element {
  const before = (): string | null => props.key?.expires_at ?? null;
  const change = (text: string): void => {
    const at = parseFieldTime(text);
    props.onChange({ expires_at: at === undefined ? null : new Date(at).toISOString() });
  };
  return (
    <TextField label="Expires" hint={`In ${zoneName(now())}. Empty: never.`}>
      {(ids) => (
        <input
          {...ids}
          type="datetime-local"
          value={fieldTime(before())}
          onInput={(event) => change(event.currentTarget.value)}
        />
      )}
    </TextField>
  );
}

const TextFields = (props: KeyFieldsProps): JSX.Element => (
  <>
    <TextField label="Owner" hint="The person or team that is responsible for the key.">
      {(ids) => (
        <input
          {...ids}
          autocomplete="off"
          maxlength="240"
          value={props.key?.owner ?? ""}
          onInput={(event) => props.onChange({ owner: event.currentTarget.value.trim() || null })}
        />
      )}
    </TextField>
    <TextField label="Note" hint="Up to 1,000 characters. The filter finds it.">
      {(ids) => (
        <textarea
          {...ids}
          rows="2"
          maxlength="2000"
          value={props.key?.note ?? ""}
          onInput={(event) => props.onChange({ note: event.currentTarget.value.trim() || null })}
        />
      )}
    </TextField>
    <TextField label="Tags" hint="Up to 10, separated by commas.">
      {(ids) => (
        <input
          {...ids}
          autocomplete="off"
          value={props.key?.tags?.join(", ") ?? ""}
          onInput={(event) => props.onChange({ tags: listOf(event.currentTarget.value) })}
        />
      )}
    </TextField>
  </>
);
