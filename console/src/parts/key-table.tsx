import { For, type JSX, Show } from "solid-js";
import { type KeySort, type KeySortColumn, nextKeySort } from "../data/key-sort.ts";
import type { Key } from "../data/queries.ts";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { KeyRow } from "./key-row.tsx";
import { SkeletonRows } from "./skeleton.tsx";

interface KeyTableProps {
  /** Undefined while they load. */
  keys: Key[] | undefined;
  sort: KeySort;
  onSort: (next: KeySort) => void;
  onLimits: (key: Key) => void;
  onDelete: (key: Key) => void;
}

export function KeyTable(props: KeyTableProps): JSX.Element {
  const scroll = createInfiniteScroll(() => props.keys ?? []);
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone keys">
          <caption class="visually-hidden">API keys</caption>
          <KeyTableHead sort={props.sort} onSort={(next) => props.onSort(next)} />
          <tbody>
            <Show when={props.keys} fallback={<SkeletonRows columns={9} />}>
              <For each={scroll.shown()}>
                {(key) => (
                  <KeyRow key={key} onLimits={() => props.onLimits(key)} onDelete={() => props.onDelete(key)} />
                )}
              </For>
            </Show>
          </tbody>
        </table>
      </div>
      <MoreRows scroll={scroll} />
    </>
  );
}

function KeyTableHead(props: { sort: KeySort; onSort: (next: KeySort) => void }): JSX.Element {
  const SortableHead = (head: {
    column: KeySortColumn;
    label: string;
    unit?: string;
    number?: boolean;
  }): JSX.Element => (
    <th
      scope="col"
      classList={{ number: head.number ?? false }}
      aria-sort={props.sort.column === head.column ? props.sort.direction : undefined}
    >
      <button class="sort" type="button" onClick={() => props.onSort(nextKeySort(props.sort, head.column))}>
        {head.label}
        <Show when={head.unit}>
          <span class="visually-hidden">{head.unit}</span>
        </Show>
      </button>
    </th>
  );
  return (
    <thead>
      <tr>
        <SortableHead column="name" label="Name" />
        <th scope="col">Key</th>
        <th scope="col">Active</th>
        <SortableHead column="created" label="Created" />
        <SortableHead column="used" label="Last used" />
        <SortableHead column="requests" label="Requests" number />
        <SortableHead column="input" label="Input" unit="tokens" number />
        <SortableHead column="output" label="Output" unit="tokens" number />
        <th scope="col">
          <span class="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}
