import { type Component, createEffect, createMemo, createSignal, type JSX, Show } from "solid-js";
import { count, plural } from "../lib/format.ts";
import { useHasTeams } from "../queries.ts";
import { Button, IconButton } from "../ui/controls.tsx";
import { Dynamic } from "solid-js/web";
import type { BulkAction, BulkRow, Noun } from "./key-bulk.ts";

export type BulkQuestion = BulkAction["kind"] | "switch-off";

export type Selected<Row extends { id: number }> = ReturnType<typeof useSelected<Row>>;

/**
 * The rows of a list that the user selected. One that leaves the list is no longer selected, or a filter would hide it.
 * @param listed the rows that the filter shows
 */
export function useSelected<Row extends { id: number }>(listed: () => readonly Row[]) {
  const [ids, setIds] = createSignal<ReadonlySet<number>>(new Set());
  const list = createMemo(() => (ids().size === 0 ? [] : listed().filter(({ id }) => ids().has(id))));
  return {
    list,
    has: ({ id }: Row): boolean => ids().has(id),
    set: ({ id }: Row, isSelected: boolean): void => {
      const shown = new Set(list().map((row) => row.id));
      if (isSelected) shown.add(id);
      else shown.delete(id);
      setIds(shown);
    },
    replace: (rows: readonly { id: number }[]): void => void setIds(new Set(rows.map(({ id }) => id))),
  };
}

/** All rows that the filter shows, also those that the table adds on scrolling. */
export function SelectAll<Row extends { id: number }>(props: {
  noun: Noun;
  rows: readonly Row[] | undefined;
  selected: Selected<Row>;
}): JSX.Element {
  const rows = () => props.rows ?? [];
  const chosen = (): number => props.selected.list().length;
  let input: HTMLInputElement | undefined;
  createEffect(() => {
    if (input !== undefined) input.indeterminate = chosen() > 0 && chosen() < rows().length;
  });
  return (
    <td class="key-select">
      <input
        ref={input}
        type="checkbox"
        aria-label={`Select all ${props.noun}s`}
        disabled={rows().length === 0}
        checked={chosen() > 0 && chosen() === rows().length}
        onChange={(event) => props.selected.replace(event.currentTarget.checked ? rows() : [])}
      />
    </td>
  );
}

export const SelectCell = <Row extends { id: number; name: string }>(props: {
  row: Row;
  selected: Pick<Selected<Row>, "has" | "set">;
}): JSX.Element => (
  <td class="key-select">
    <input
      type="checkbox"
      aria-label={`Select ${props.row.name}`}
      checked={props.selected.has(props.row)}
      onChange={(event) => props.selected.set(props.row, event.currentTarget.checked)}
    />
  </td>
);

export interface BulkDialogProps {
  noun: Noun;
  rows: readonly BulkRow[];
  question: BulkQuestion;
  /** Called with the rows for which it failed. */
  onDone: (failed: readonly BulkRow[]) => void;
  onClose: () => void;
}

interface BulkProps<Row extends BulkRow> {
  noun: Noun;
  selected: Selected<Row>;
  dialog: Component<BulkDialogProps>;
  /** What the filter shows. */
  rows: readonly Row[];
  onExport: (selected: readonly Row[]) => void;
}

/** What can be done with the selected rows, if there are any, and the question before it is done. */
export function Bulk<Row extends BulkRow>(props: BulkProps<Row>): JSX.Element {
  const [asked, setAsked] = createSignal<{ question: BulkQuestion; rows: readonly Row[] }>();
  return (
    <>
      <Show when={props.selected.list().length > 0}>
        <BulkBar {...props} onAsk={(question) => setAsked({ question, rows: props.selected.list() })} />
      </Show>
      <Show when={asked()} keyed>
        {(one) => (
          <Dynamic
            component={props.dialog}
            {...one}
            noun={props.noun}
            onDone={props.selected.replace}
            onClose={() => setAsked(undefined)}
          />
        )}
      </Show>
    </>
  );
}

/** It floats above the table's end, so that it moves no row. */
function BulkBar<Row extends BulkRow>(
  props: BulkProps<Row> & { onAsk: (question: BulkQuestion) => void },
): JSX.Element {
  const hasTeams = useHasTeams();
  const selected = (): readonly Row[] => props.selected.list();
  const Action = (action: { question: BulkQuestion; label: string; danger?: boolean }): JSX.Element => (
    <Button tone={action.danger && "danger"} onClick={() => props.onAsk(action.question)}>
      {action.label}
    </Button>
  );
  return (
    <section class="bulk-bar" aria-label={`Selected ${props.noun}s`}>
      <p role="status">
        {plural(selected().length, props.noun)} selected
        <Show when={selected().length < props.rows.length}>
          {" "}
          <button class="link" type="button" onClick={() => props.selected.replace(props.rows)}>
            Select all {count(props.rows.length)}
          </button>
        </Show>
      </p>
      <div class="actions">
        <Action question="switch" label="Switch on" />
        <Action question="switch-off" label="Switch off" />
        <Action question="tag" label="Tag" />
        <Show when={props.noun === "key"}>
          <Action question="paths" label="Paths" />
        </Show>
        <Show when={hasTeams()}>
          <Action question="team" label="Team" />
        </Show>
        <Button icon="download" onClick={() => props.onExport(selected())}>
          Export
        </Button>
        <Action question="delete" label="Delete" danger />
        <IconButton icon="close" label="Clear the selection" onClick={() => props.selected.replace([])} />
      </div>
    </section>
  );
}
