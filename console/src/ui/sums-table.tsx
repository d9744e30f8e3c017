import { createMemo, For, type JSX, Match, Show, Switch } from "solid-js";
import { plural } from "../lib/format.ts";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { NotLoaded, type PanelQuery } from "./panel.tsx";
import { SkeletonRows } from "./skeleton.tsx";
import { type HeadList, Heads, listHeads } from "./table.tsx";

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
export const SumsTable = <Row,>(props: SumsTableProps<Row>): JSX.Element => (
  <Switch fallback={<Rows {...props} />}>
    <Match when={props.query.data === undefined && props.query.isError}>
      <NotLoaded query={props.query} />
    </Match>
    <Match when={props.rows?.length === 0}>{props.empty}</Match>
  </Switch>
);

function Rows<Row>(props: SumsTableProps<Row>): JSX.Element {
  const scroll = createInfiniteScroll(() => props.rows ?? [], { choice: () => props.choice });
  const byId = createMemo(() => new Map(props.rows?.map((row) => [props.idOf(row), row])));
  const isStale = (): boolean => props.query.isPlaceholderData;
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone sums" classList={{ stale: isStale() }} aria-busy={isStale()}>
          <caption class="visually-hidden">{props.caption}</caption>
          <thead>
            <tr>
              <Heads heads={props.heads} />
            </tr>
          </thead>
          <tbody>
            <Show when={props.rows} fallback={<SkeletonRows columns={listHeads(props.heads).length} />}>
              <For each={scroll.shown().map((row) => props.idOf(row))}>
                {(id) => <Show when={byId().get(id)}>{(row) => <tr>{props.children(row)}</tr>}</Show>}
              </For>
            </Show>
          </tbody>
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
        </table>
      </div>
      <MoreRows scroll={scroll} />
    </>
  );
}
