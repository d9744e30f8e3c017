import { createSignal, For, type JSX, onMount, Show } from "solid-js";
import { limitLabels, type LimitName, limitNames, limitOf, listOf } from "../data/key-limits.ts";
import { type KeyFields, useChangeKey } from "../data/key-mutations.ts";
import { plural } from "../data/format.ts";
import type { Key } from "../data/queries.ts";
import { TextField } from "./controls.tsx";
import { Dialog } from "./dialog.tsx";
import { UsedLimits } from "./used-limits.tsx";

/** What a key may take, what it is for, and how much of its limits is used. */
export function KeyLimitsDialog(props: { key: Key; onClose: () => void }): JSX.Element {
  const changeKey = useChangeKey();
  const [fields, setFields] = createSignal<KeyFields>({});
  let first: HTMLInputElement | undefined;
  onMount(() => first?.focus());
  const set = (changed: KeyFields): void => void setFields((before) => ({ ...before, ...changed }));

  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    if (Object.keys(fields()).length === 0) return props.onClose();
    changeKey.mutate({ key: props.key, fields: fields() }, { onSuccess: () => props.onClose() });
  };

  return (
    <Dialog title={`Limits of “${props.key.name}”`} onClose={() => props.onClose()}>
      <UsedLimits key={props.key} />
      <Show when={props.key.refused_today > 0}>
        <p>{plural(props.key.refused_today, "request")} refused by these limits today.</p>
      </Show>
      <form onSubmit={submit}>
        <div class="limit-fields">
          <For each={limitNames}>
            {(name, index) => (
              <LimitField
                name={name}
                value={props.key[name]}
                setInput={(input) => {
                  if (index() === 0) first = input;
                }}
                onChange={(limit) => set({ [name]: limit })}
              />
            )}
          </For>
        </div>
        <OtherFields key={props.key} onChange={set} />
        <Show when={changeKey.error}>
          {(error) => (
            <p class="form-error" role="alert">
              {error().message}
            </p>
          )}
        </Show>
        <div class="dialog-actions">
          <button class="button" type="button" onClick={() => props.onClose()}>
            Cancel
          </button>
          <button class="button primary" type="submit" disabled={changeKey.isPending}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function LimitField(props: {
  name: LimitName;
  value: number | null;
  setInput: (input: HTMLInputElement) => void;
  onChange: (limit: number | null) => void;
}): JSX.Element {
  return (
    <label class="field">
      <span>{limitLabels[props.name]}</span>
      <input
        ref={(input) => props.setInput(input)}
        type="number"
        min="1"
        step="1"
        inputmode="numeric"
        placeholder="No limit"
        value={props.value ?? ""}
        onInput={(event) => props.onChange(limitOf(event.currentTarget.value))}
      />
    </label>
  );
}

function OtherFields(props: { key: Key; onChange: (changed: KeyFields) => void }): JSX.Element {
  return (
    <>
      <TextField label="Allowed models" hint="Names or prefixes such as qwen*, separated by commas. Empty: all.">
        {(ids) => (
          <input
            {...ids}
            autocomplete="off"
            spellcheck={false}
            value={props.key.allowed_models?.join(", ") ?? ""}
            onInput={(event) => props.onChange({ allowed_models: listOf(event.currentTarget.value) })}
          />
        )}
      </TextField>
      <TextField label="Expires" hint="With an offset, such as 2026-12-31T23:59:59+09:00. Empty: never.">
        {(ids) => (
          <input
            {...ids}
            autocomplete="off"
            spellcheck={false}
            value={props.key.expires_at ?? ""}
            onInput={(event) => props.onChange({ expires_at: event.currentTarget.value.trim() || null })}
          />
        )}
      </TextField>
      <TextField label="Owner" hint="Who answers for it.">
        {(ids) => (
          <input
            {...ids}
            autocomplete="off"
            value={props.key.owner ?? ""}
            onInput={(event) => props.onChange({ owner: event.currentTarget.value })}
          />
        )}
      </TextField>
      <TextField label="Note" hint="Up to 1,000 characters. The filter finds it.">
        {(ids) => (
          <input
            {...ids}
            autocomplete="off"
            value={props.key.note ?? ""}
            onInput={(event) => props.onChange({ note: event.currentTarget.value })}
          />
        )}
      </TextField>
      <TextField label="Tags" hint="Separated by commas.">
        {(ids) => (
          <input
            {...ids}
            autocomplete="off"
            value={props.key.tags.join(", ")}
            onInput={(event) => props.onChange({ tags: listOf(event.currentTarget.value) })}
          />
        )}
      </TextField>
    </>
  );
}
