import { type JSX, Show } from "solid-js";
import { downloadCsv } from "../lib/csv.ts";
import { plural } from "../lib/format.ts";
import type { Key } from "../queries.ts";
import { Icon } from "../ui/icon.tsx";
import type { BulkAction } from "./key-bulk.ts";
import { keyCsv } from "./key-list.ts";

export type BulkQuestion = BulkAction["kind"] | "switch-off";

interface BulkBarProps {
  selected: readonly Key[];
  /** How many keys the filter shows. */
  matchingCount: number;
  onAsk: (question: BulkQuestion) => void;
  onSelectAll: () => void;
  onClear: () => void;
}

/** What can be done with the selected keys. It floats above the table's end, so that it moves no row. */
export function BulkBar(props: BulkBarProps): JSX.Element {
  const Action = (action: { question: BulkQuestion; label: string; danger?: boolean }): JSX.Element => (
    <button
      class="button"
      classList={{ danger: action.danger ?? false }}
      type="button"
      onClick={() => props.onAsk(action.question)}
    >
      {action.label}
    </button>
  );
  return (
    <section class="bulk-bar" aria-label="Selected keys">
      <p role="status">
        {plural(props.selected.length, "key")} selected
        <Show when={props.selected.length < props.matchingCount}>
          {" "}
          <button class="link" type="button" onClick={() => props.onSelectAll()}>
            Select all {props.matchingCount}
          </button>
        </Show>
      </p>
      <div class="actions">
        <Action question="switch" label="Switch on" />
        <Action question="switch-off" label="Switch off" />
        <Action question="tag" label="Tag" />
        <Action question="paths" label="Paths" />
        <button
          class="button"
          type="button"
          onClick={() => downloadCsv("tollgate-selected-keys.csv", keyCsv(props.selected))}
        >
          <Icon name="download" />
          Export
        </button>
        <Action question="delete" label="Delete" danger />
        <button class="icon-button" type="button" aria-label="Clear the selection" onClick={() => props.onClear()}>
          <Icon name="close" />
        </button>
      </div>
    </section>
  );
}
