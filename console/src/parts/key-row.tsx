import { A } from "@solidjs/router";
import { createSignal, type JSX, onMount, Show } from "solid-js";
import { count } from "../data/format.ts";
import { useUpdateKey } from "../data/key-mutations.ts";
import type { Key } from "../data/queries.ts";
import { dateTimeLabel } from "../data/seoul-time.ts";
import { ToggleSwitch } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { RelativeTimeOrNever } from "./relative-time.tsx";

/** A key that can be renamed, deactivated and deleted in place. Its name links to its usage. */
export function KeyRow(props: { key: Key; onDelete: () => void }): JSX.Element {
  const updateKey = useUpdateKey();
  const [renaming, setRenaming] = createSignal(false);
  let renameButton: HTMLButtonElement | undefined;

  const rename = (name: string): void => {
    setRenaming(false);
    renameButton?.focus();
    if (name !== "" && name !== props.key.name) updateKey.mutate({ key: props.key, update: { name } });
  };

  return (
    <tr classList={{ inactive: !props.key.is_active }}>
      <th scope="row" class="key-name">
        <Show when={renaming()} fallback={<KeyName key={props.key} />}>
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
          onChange={(is_active) => updateKey.mutate({ key: props.key, update: { is_active } })}
        />
      </td>
      <td class="key-used" data-label="Last used">
        <RelativeTimeOrNever at={props.key.last_used_at} />
      </td>
      <TotalCells key={props.key} />
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

const KeyName = (props: { key: Key }): JSX.Element => (
  <A href={`/usage?key=${props.key.id}`} title={`Usage of ${props.key.name}`}>
    {props.key.name}
  </A>
);

function TotalCells(props: { key: Key }): JSX.Element {
  return (
    <>
      <td class="number" data-label="Requests">
        {count(props.key.total_request_count)}
      </td>
      <td class="number" data-label="Input tokens">
        {count(props.key.total_input_tokens)}
      </td>
      <td class="number" data-label="Output tokens">
        {count(props.key.total_output_tokens)}
      </td>
    </>
  );
}

/** Enter or leaving the field saves the new name; Escape restores the old one. */
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
        // The focus moves to the rename button during this key press, which would otherwise click it.
        event.preventDefault();
        finish(event.key === "Enter" ? event.currentTarget.value : props.name);
      }}
    />
  );
}
