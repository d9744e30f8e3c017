import type { UseQueryResult } from "@tanstack/solid-query";
import { For, type JSX, Show } from "solid-js";
import type { Key } from "../queries.ts";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { useUsageBucketsQuery } from "../usage/queries.ts";
import type { UsageBuckets } from "../usage/usage-buckets.ts";
import { allUsage } from "../usage/usage-filters.ts";
import { SelectAll, type Selected } from "./bulk-bar.tsx";
import { KeyRow } from "./key-row.tsx";
import { type KeySort, type KeySortColumn, nextKeySort } from "./key-list.ts";

interface KeyTableProps {
  /** Undefined while they load. */
  keys: Key[] | undefined;
  /** The filter and the sort, as text. */
  choice: string;
  sort: KeySort;
  onSort: (next: KeySort) => void;
  selected: Selected<Key>;
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
                    selected={props.selected}
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
    rank?: string;
  }): JSX.Element => (
    <th
      scope="col"
      class={head.rank}
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
        <SelectAll noun="key" rows={props.keys} selected={props.selected} />
        <SortableHead column="name" label="Name" />
        <th scope="col" class="key-text">
          Key
        </th>
        <th scope="col">Active</th>
        <SortableHead column="created" label="Created" rank="rank-3" />
        <SortableHead column="used" label="Last used" />
        <th scope="col" class="key-spark rank-2">
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
