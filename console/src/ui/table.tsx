import { A } from "@solidjs/router";
import { For, type JSX, Match, Show, Switch } from "solid-js";
import { count } from "../lib/format.ts";
import { type Cost, costLabel, costTitle } from "../lib/money.ts";
import { nextSort, type Sort, type SortColumns } from "../lib/sort.ts";
import { NotLoaded, type PanelQuery } from "./panel.tsx";
import { SkeletonRows } from "./skeleton.tsx";

/** A column's head. */
export interface Head {
  label: string;
  number?: boolean;
  /** When it leaves: see `shell.css`. */
  rank?: string;
  /** For screen readers alone. */
  isHidden?: boolean;
}

export const numbers = (...labels: string[]): Head[] => labels.map((label) => ({ label, number: true }));

/** Of the last column, which has buttons. */
export const actions: Head = { label: "Actions", isHidden: true };

/** Those that are not there are false. */
export type HeadList = readonly (Head | string | false)[];

const listHeads = (heads: HeadList): Head[] =>
  heads.flatMap((head) => (head === false ? [] : typeof head === "string" ? { label: head } : head));

const Heads = (props: { heads: HeadList }): JSX.Element => (
  <For each={listHeads(props.heads)}>
    {(head) => (
      <th scope="col" class={head.rank} classList={{ number: head.number === true }}>
        <Show when={head.isHidden} fallback={head.label}>
          <span class="visually-hidden">{head.label}</span>
        </Show>
      </th>
    )}
  </For>
);

interface SortableProps<Column extends string> {
  columns: SortColumns<Column>;
  sort: Sort<Column> | undefined;
  column: Column;
  label: string;
  /** For screen readers alone. */
  unit?: string;
  class?: string;
  number?: boolean;
  onSort: (next: Sort<Column>) => void;
}

export const SortableHead = <Column extends string>(props: SortableProps<Column>): JSX.Element => (
  <th
    scope="col"
    class={props.class}
    classList={{ number: props.number === true }}
    aria-sort={props.sort?.column === props.column ? props.sort.direction : undefined}
  >
    <button class="sort" type="button" onClick={() => props.onSort(nextSort(props.sort, props.column, props.columns))}>
      {props.label}
      <Show when={props.unit}>
        <span class="visually-hidden">{props.unit}</span>
      </Show>
    </button>
  </th>
);

interface TableProps<Row> {
  caption: string;
  class?: string;
  heads: HeadList;
  /** Above the first column: a cell of its own. */
  firstHead?: JSX.Element;
  /** Undefined while they load, for which `skeleton` rows have space. */
  rows: readonly Row[] | undefined;
  skeleton?: number;
  /** Whose failure stands in place of rows that never came. */
  query?: PanelQuery;
  /** Whether the rows are those of another choice. */
  isStale?: boolean;
  /** A `<tfoot>`. */
  foot?: JSX.Element;
  /** In place of no rows. */
  empty?: JSX.Element;
  children: (row: Row) => JSX.Element;
}

/** A table, which is cards on a phone. */
export const Table = <Row,>(props: TableProps<Row>): JSX.Element => (
  <Switch>
    {/* Not `=== undefined`: Solid makes false of a condition in JSX. */}
    <Match when={!props.rows && props.query?.isError === true && props.query}>
      {(query) => <NotLoaded query={query()} />}
    </Match>
    <Match when={props.rows?.length === 0}>{props.empty}</Match>
    <Match when={true}>
      <div class="table-scroll">
        <table
          class={`cards-on-phone ${props.class ?? ""}`}
          classList={{ stale: props.isStale }}
          aria-busy={props.isStale}
        >
          <caption class="visually-hidden">{props.caption}</caption>
          <thead>
            <tr>
              {props.firstHead}
              <Heads heads={props.heads} />
            </tr>
          </thead>
          <tbody>
            <Show
              when={props.rows}
              fallback={<SkeletonRows columns={listHeads(props.heads).length} rows={props.skeleton ?? 4} />}
            >
              <For each={props.rows}>{(row) => props.children(row)}</For>
            </Show>
          </tbody>
          {props.foot}
        </table>
      </div>
    </Match>
  </Switch>
);

interface CellProps {
  /** Of its column, which a narrow screen shows beside it. */
  label: string;
  /** When it leaves: see `shell.css`. */
  rank?: string;
  title?: string | undefined;
}

const classOf = (kind: string, { rank }: CellProps): string => (rank === undefined ? kind : `${kind} ${rank}`);

/** @param props.value null: a dash */
export const NumberCell = (props: CellProps & { value: number | string | null }): JSX.Element => (
  <td class={classOf("number", props)} data-label={props.label} title={props.title}>
    {typeof props.value === "number" ? count(props.value) : (props.value ?? "–")}
  </td>
);

/** A text that is cut at its end. @param props.none in place of none */
export const TextCell = (
  props: CellProps & { text: string | null | undefined; none?: string; href?: string | false },
): JSX.Element => (
  <td class={classOf("cut", props)} data-label={props.label} title={props.title ?? props.text ?? undefined}>
    <Show when={props.text} fallback={<span class="faint">{props.none ?? "–"}</span>}>
      <Show when={props.href} fallback={<bdi>{props.text}</bdi>}>
        {(href) => (
          <A href={href()}>
            <bdi>{props.text}</bdi>
          </A>
        )}
      </Show>
    </Show>
  </td>
);

/** @param props no cell without a currency; a cost that is not known is a dash */
export const CostCell = (props: { cost: Cost | undefined; currency: string | undefined }): JSX.Element => (
  <Show when={props.currency}>
    {(currency) => (
      <td class="number" data-label="Cost" title={props.cost && costTitle(props.cost)}>
        {props.cost === undefined ? "–" : costLabel(props.cost, currency())}
      </td>
    )}
  </Show>
);
