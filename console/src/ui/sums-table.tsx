import { createMemo, type JSX, Show } from "solid-js";
import { plural } from "../lib/format.ts";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import type { PanelQuery } from "./panel.tsx";
import { type HeadList, Table } from "./table.tsx";

interface SumsTableProps<Row> {
  caption: string;
  query: PanelQuery & { readonly isPlaceholderData: boolean };
  /** Undefined while they load. */
  rows: readonly Row[] | undefined;
  /** What the user chose of them, as text: another choice begins with the first rows again. */
  choice: string;
  /** What tells rows apart: a row whose sums change stays, with the focus. */
  idOf: (row: Row) => string;
  heads: HeadList;
  children: (row: () => Row) => JSX.Element;
  /** How many columns the number of rows takes. */
  span: number;
  /** The sums, after the number of rows. */
  foot: JSX.Element;
  /** In place of no rows. */
  empty: JSX.Element;
}

/** A table of sums by something, with those of all rows at its foot. */
export function SumsTable<Row>(props: SumsTableProps<Row>): JSX.Element {
  const scroll = createInfiniteScroll(() => props.rows ?? [], { choice: () => props.choice });
  const byId = createMemo(() => new Map(props.rows?.map((row) => [props.idOf(row), row])));
  return (
    <>
      <Table
        {...props}
        class="sums"
        skeleton={6}
        isStale={props.query.isPlaceholderData}
        rows={props.rows && scroll.shown().map((row) => props.idOf(row))}
        foot={
          <Show when={props.rows}>
            {(rows) => (
              <tfoot>
                <tr>
                  <th scope="row" colspan={props.span}>
                    {plural(rows().length, "row")}
                  </th>
                  {props.foot}
                </tr>
              </tfoot>
            )}
          </Show>
        }
      >
        {(id) => <Show when={byId().get(id)}>{(row) => <tr>{props.children(row)}</tr>}</Show>}
      </Table>
      <MoreRows scroll={scroll} />
    </>
  );
}
