import { A } from "@solidjs/router";
import { createSignal, type JSX, onMount, Show } from "solid-js";
import { count } from "../data/format.ts";
import { useUpdateKey } from "../data/key-mutations.ts";
import type { Key } from "../data/queries.ts";
import { dateTimeLabel } from "../data/seoul-time.ts";
import { ToggleSwitch } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { RelativeTimeOrNever } from "./relative-time.tsx";

/** A key with all that can be done to it in place; its name leads to its usage. */
export function KeyRow(props: { key: Key; onDelete: () => void }): JSX.Element {
  const change = useUpdateKey();
  const [renaming, setRenaming] = createSignal(false);
  let renameButton: HTMLButtonElement | undefined;

  const rename = (name: string): void => {
    setRenaming(false);
    renameButton?.focus();
    if (name !== "" && name !== props.key.name) change.mutate({ key: props.key, update: { name } });
  };

  return (
    <tr classList={{ inactive: !props.key.is_active }}>
      <th scope="row" class="key-name">
        <Show
          when={renaming()}
          fallback={
            <A href={`/usage?key=${props.key.id}`} title={`Usage of ${props.key.name}`}>
              {props.key.name}
            </A>
          }
        >
          <RenameField name={props.key.name} onDone={rename} />
        </Show>
      </th>
      <td class="key-text" data-label="Key">
        <code title={`Created ${dateTimeLabel(Date.parse(props.key.created_at))}`}>{props.key.key}</code>
      </td>
      <td class="key-state" data-label="Active">
        <ToggleSwitch
          label={`${props.key.name} is active`}
          on={props.key.is_active}
          onChange={(is_active) => change.mutate({ key: props.key, update: { is_active } })}
        />
      </td>
      <td class="key-used" data-label="Last used">
        <RelativeTimeOrNever at={props.key.last_used_at} />
      </td>
      <td class="number" data-label="Requests">
        {count(props.key.total_request_count)}
      </td>
      <td class="number" data-label="Input tokens">
        {count(props.key.total_input_tokens)}
      </td>
      <td class="number" data-label="Output tokens">
        {count(props.key.total_output_tokens)}
      </td>
      <td class="row-actions">
        <button
          class="icon-button"
          type="button"
          ref={renameButton}
          aria-label={`Rename ${props.key.name}`}
          title="Rename"
          onClick={() => setRenaming(true)}
        >
          <Icon name="pencil" />
        </button>
        <button
          class="icon-button danger"
          type="button"
          aria-label={`Delete ${props.key.name}`}
          title="Delete"
          onClick={() => props.onDelete()}
        >
          <Icon name="trash" />
        </button>
      </td>
    </tr>
  );
}

/** Enter and leaving the field keep the new name, Escape the old one. */
function RenameField(props: { name: string; onDone: (name: string) => void }): JSX.Element {
  let input: HTMLInputElement | undefined;
  let done = false;
  onMount(() => input?.select());
  const finish = (name: string): void => {
    if (done) return;
    done = true;
    props.onDone(name.trim());
  };
  return (
    <input
      class="rename"
      ref={input}
      value={props.name}
      maxlength="240"
      aria-label={`New name of ${props.name}`}
      onBlur={(event) => finish(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        // The focus moves to the button during this very key press, which would press it.
        event.preventDefault();
        finish(event.key === "Enter" ? event.currentTarget.value : props.name);
      }}
    />
  );
}
