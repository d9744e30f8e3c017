import type { UseQueryResult } from "@tanstack/solid-query";
import { For, type JSX, Show, untrack } from "solid-js";
import type { Key } from "../queries.ts";
import { createInfiniteScroll, MoreRows, type PagedList } from "../ui/infinite-scroll.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { SortableHead } from "../ui/table.tsx";
import { useUsageBucketsQuery } from "../usage/queries.ts";
import type { UsageBuckets } from "../usage/usage-buckets.ts";
import { allUsage } from "../usage/usage-filters.ts";
import { SelectAll, type Selected } from "./bulk-bar.tsx";
import { KeyRow } from "./key-row.tsx";
import { keyColumns, type KeySort } from "./key-list.ts";

interface KeyTableProps {
  /** Undefined while they load. */
  keys: Key[] | undefined;
  /** The filter and the sort, as text. */
  choice: string;
  /** Whether there are more, which have to come first. */
  paged: PagedList;
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
  const scroll = createInfiniteScroll(() => props.keys ?? [], {
    choice: () => props.choice,
    paged: untrack(() => props.paged),
  });
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
  const Sortable = (head: {
    column: keyof typeof keyColumns;
    label: string;
    unit?: string;
    number?: boolean;
    rank?: string;
  }): JSX.Element => (
    <SortableHead
      {...head}
      class={`key-${head.column} ${head.rank ?? ""}`}
      columns={keyColumns}
      sort={props.sort}
      onSort={props.onSort}
    />
  );
  return (
    <thead>
      <tr>
        <SelectAll noun="key" rows={props.keys} selected={props.selected} />
        <Sortable column="name" label="Name" />
        <th scope="col" class="key-text">
          Key
        </th>
        <th scope="col">Active</th>
        <Sortable column="created" label="Created" rank="rank-3" />
        <Sortable column="used" label="Last used" />
        <th scope="col" class="key-spark rank-2">
          24 h
        </th>
        <Sortable column="requests" label="Requests" number />
        <Sortable column="input" label="Input" unit="tokens" number />
        <Sortable column="output" label="Output" unit="tokens" number />
        <th scope="col">
          <span class="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}
