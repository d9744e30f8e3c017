import type { UseQueryResult } from "@tanstack/solid-query";
import { createEffect, createMemo, createSignal, For, type JSX, Show } from "solid-js";
import type { Key } from "../queries.ts";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { useUsageBucketsQuery } from "../usage/queries.ts";
import type { UsageBuckets } from "../usage/usage-buckets.ts";
import { allUsage } from "../usage/usage-filters.ts";
import { KeyRow } from "./key-row.tsx";
import { type KeySort, type KeySortColumn, nextKeySort } from "./key-list.ts";

interface KeyTableProps {
  /** Undefined while they load. */
  keys: Key[] | undefined;
  /** The filter and the sort, as text. */
  choice: string;
  sort: KeySort;
  onSort: (next: KeySort) => void;
  selected: SelectedKeys;
  /** Undefined while they load. */
  sparks: UsageBuckets | undefined;
  onLimits: (key: Key) => void;
  onDelete: (key: Key) => void;
}

const sparksRequest = {
  filter: allUsage,
  by: "key",
  timeRange: { preset: "24h", zoom: undefined },
  bucketMinutes: 60,
  metric: "total",
  // The API draws no more than these; the table has the names.
  top: 1000,
  list: 0,
} as const;

/** The tokens of all keys in each of the last 24 hours, in one request. */
export const useKeySparksQuery = (enabled: () => boolean): UseQueryResult<UsageBuckets> =>
  useUsageBucketsQuery(() => sparksRequest, 1, enabled);

/** Undefined while they load, and for a key without usage. */
const sparkOf = (buckets: UsageBuckets | undefined, { id }: Key): Float64Array | undefined => buckets?.series.get(id);

export function KeyTable(props: KeyTableProps): JSX.Element {
  const scroll = createInfiniteScroll(() => props.keys ?? [], { choice: () => props.choice });
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone keys">
          <caption class="visually-hidden">API keys</caption>
          <KeyTableHead {...props} />
          <tbody>
            <Show when={props.keys} fallback={<SkeletonRows columns={11} />}>
              <For each={scroll.shown()}>
                {(key) => (
                  <KeyRow
                    key={key}
                    isSelected={props.selected.has(key)}
                    onSelect={(isSelected) => props.selected.set(key, isSelected)}
                    spark={sparkOf(props.sparks, key)}
                    onLimits={() => props.onLimits(key)}
                    onDelete={() => props.onDelete(key)}
                  />
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

function KeyTableHead(props: Pick<KeyTableProps, "keys" | "sort" | "onSort" | "selected">): JSX.Element {
  const SortableHead = (head: {
    column: KeySortColumn;
    label: string;
    unit?: string;
    number?: boolean;
  }): JSX.Element => (
    <th
      scope="col"
      classList={{ [`key-${head.column}`]: true, number: head.number ?? false }}
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
        <td class="key-select">
          <SelectAll {...props} />
        </td>
        <SortableHead column="name" label="Name" />
        <th scope="col" class="key-text">
          Key
        </th>
        <th scope="col">Active</th>
        <SortableHead column="created" label="Created" />
        <SortableHead column="used" label="Last used" />
        <th scope="col" class="key-spark">
          24 h
        </th>
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

/** All keys that the filter shows, also those that the table adds on scrolling. */
function SelectAll(props: Pick<KeyTableProps, "keys" | "selected">): JSX.Element {
  const keys = (): readonly Key[] => props.keys ?? [];
  const count = (): number => props.selected.list().length;
  let input: HTMLInputElement | undefined;
  createEffect(() => {
    if (input !== undefined) input.indeterminate = count() > 0 && count() < keys().length;
  });
  return (
    <input
      ref={input}
      type="checkbox"
      aria-label="Select all keys"
      disabled={keys().length === 0}
      checked={count() > 0 && count() === keys().length}
      onChange={(event) => props.selected.replace(event.currentTarget.checked ? keys() : [])}
    />
  );
}

/** The keys of a list that the user selected. A key that leaves the list is no longer selected, or a filter would hide it. */
interface SelectedKeys {
  list: () => readonly Key[];
  has: (key: Key) => boolean;
  set: (key: Key, isSelected: boolean) => void;
  replace: (keys: readonly Key[]) => void;
}

/** @param listed the keys that the filter shows */
export function useSelectedKeys(listed: () => readonly Key[]): SelectedKeys {
  const [ids, setIds] = createSignal<ReadonlySet<number>>(new Set());
  const list = createMemo(() => (ids().size === 0 ? [] : listed().filter(({ id }) => ids().has(id))));
  return {
    list,
    has: ({ id }) => ids().has(id),
    set: ({ id }, isSelected) => {
      const shown = new Set(list().map((key) => key.id));
      if (isSelected) shown.add(id);
      else shown.delete(id);
      setIds(shown);
    },
    replace: (keys) => void setIds(new Set(keys.map(({ id }) => id))),
  };
}
