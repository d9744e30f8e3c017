import { A } from "@solidjs/router";
import { createSignal, createUniqueId, type JSX, onMount, Show } from "solid-js";
import { causeOf } from "../client.ts";
import { Sparkline } from "../charts/sparkline.tsx";
import { compact, count } from "../lib/format.ts";
import { now } from "../lib/server-clock.ts";
import { dateTimeLabel, dayLabel } from "../lib/time-labels.ts";
import type { Key } from "../queries.ts";
import { IconButton, ToggleSwitch } from "../ui/controls.tsx";
import { Menu } from "../ui/menu.tsx";
import { RelativeTimeOrNever } from "../ui/relative-time.tsx";
import { NumberCell } from "../ui/table.tsx";
import { SelectCell, type Selected } from "./bulk-bar.tsx";
import { isNearLimit } from "./key-limits.ts";
import { isUsable } from "./key-list.ts";
import { useRenameKey, useSwitchKey } from "./key-mutations.ts";
import { createdKey, openRotationForm } from "./new-key.ts";

interface KeyRowProps {
  key: Key;
  selected: Selected<Key>;
  /** Its tokens by hour. */
  spark: Float64Array | undefined;
  onLimits: () => void;
  onDelete: () => void;
}

/** A key that can be renamed, limited, deactivated and deleted in place. Its name links to its page. */
export function KeyRow(props: KeyRowProps): JSX.Element {
  const switchKey = useSwitchKey();
  const [renaming, setRenaming] = createSignal(false);
  const createdAt = (): number => Date.parse(props.key.created_at);
  let menu: HTMLElement | undefined;

  const endRenaming = (): void => {
    setRenaming(false);
    menu?.querySelector("button")?.focus();
  };

  return (
    <tr
      classList={{
        inactive: !isUsable(props.key, now()),
        selected: props.selected.has(props.key) || props.key.id === createdKey(),
      }}
    >
      <SelectCell row={props.key} selected={props.selected} />
      <th scope="row" class="key-name">
        <Show when={renaming()} fallback={<KeyName key={props.key} />}>
          <RenameField key={props.key} onDone={endRenaming} />
        </Show>
      </th>
      <td class="key-text" data-label="Key">
        <code>{props.key.key}</code>
      </td>
      <td class="key-state" data-label="Active">
        <ToggleSwitch
          label={`${props.key.name} is active`}
          on={props.key.is_active}
          onChange={(isActive) => switchKey.mutate({ key: props.key, isActive })}
        />
      </td>
      <td class="rank-3" data-label="Created">
        <time datetime={props.key.created_at} title={dateTimeLabel(createdAt())}>
          {dayLabel(createdAt())}
        </time>
      </td>
      <td class="key-used" data-label="Last used">
        <RelativeTimeOrNever at={props.key.last_used_at} />
      </td>
      <td class="key-spark rank-2" data-label="Last 24 hours">
        <Sparkline
          values={props.spark}
          label={props.key.name}
          says={(total) => `${compact(total)} tokens in the last 24 hours`}
        />
      </td>
      <TotalCell label="Requests" value={props.key.total_request_count} />
      <TotalCell label="Input tokens" value={props.key.total_input_tokens} />
      <TotalCell label="Output tokens" value={props.key.total_output_tokens} />
      <RowActions
        key={props.key}
        setMenu={(cell) => (menu = cell)}
        onRename={() => setRenaming(true)}
        onLimits={props.onLimits}
        onDelete={props.onDelete}
      />
    </tr>
  );
}

const KeyName = (props: { key: Key }): JSX.Element => (
  <A href={`/keys/${props.key.id}`} title={props.key.name}>
    <bdi>{props.key.name}</bdi>
  </A>
);

function RowActions(props: {
  key: Key;
  setMenu: (cell: HTMLElement) => void;
  onRename: () => void;
  onLimits: () => void;
  onDelete: () => void;
}): JSX.Element {
  return (
    <td class="row-actions" classList={{ near: isNearLimit(props.key) }} ref={(cell) => props.setMenu(cell)}>
      <Menu
        label={`Actions of ${props.key.name}`}
        items={[
          { label: isNearLimit(props.key) ? "Limits: nearly used up" : "Limits", onSelect: () => props.onLimits() },
          { label: "Rename", onSelect: () => props.onRename() },
          { label: "New secret", onSelect: () => openRotationForm(props.key) },
          { label: "Delete", danger: true, onSelect: () => props.onDelete() },
        ]}
      />
    </td>
  );
}

/** Rounded, so that all columns fit; the exact value on hover and in the CSV. */
const TotalCell = (props: { label: string; value: number }): JSX.Element => (
  <NumberCell label={props.label} value={compact(props.value)} title={count(props.value)} />
);

/** Enter or the button saves the new name; Escape or the other button does not. A refused name stays in the field. */
export function RenameField(props: { key: Key; onDone: () => void }): JSX.Element {
  const renameKey = useRenameKey();
  const problemId = createUniqueId();
  let input: HTMLInputElement | undefined;
  onMount(() => input?.select());

  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const name = input?.value.trim() ?? "";
    if (name === props.key.name) return props.onDone();
    renameKey.mutate({ key: props.key, name }, { onSuccess: () => props.onDone(), onError: () => input?.focus() });
  };

  return (
    <form class="rename" onSubmit={save}>
      <input
        ref={input}
        value={props.key.name}
        required
        maxlength="240"
        aria-label={`New name of ${props.key.name}`}
        aria-invalid={renameKey.isError}
        aria-describedby={problemId}
        autocomplete="off"
        onKeyDown={(event) => {
          if (event.key === "Escape") props.onDone();
        }}
      />
      <IconButton
        icon="check"
        label="Save the name"
        type="submit"
        title="Save (Enter)"
        disabled={renameKey.isPending}
      />
      <IconButton icon="close" label="Keep the old name" title="Cancel (Escape)" onClick={() => props.onDone()} />
      <p class="form-error" id={problemId} role="alert">
        <Show when={renameKey.error}>{(error) => <>Not renamed: {causeOf(error())}.</>}</Show>
      </p>
    </form>
  );
}
