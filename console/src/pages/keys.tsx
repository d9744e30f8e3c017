import { useSearchParams } from "@solidjs/router";
import { createMemo, createSignal, For, type JSX, Show } from "solid-js";
import { plural } from "../data/format.ts";
import { FilterField, SegmentedControl } from "../parts/controls.tsx";
import { createInfiniteScroll, MoreRows } from "../parts/infinite-scroll.tsx";
import { Icon } from "../parts/icon.tsx";
import { DeleteKeyDialog } from "../parts/delete-key-dialog.tsx";
import { KeyRow } from "../parts/key-row.tsx";
import { NewKeyDialog } from "../parts/new-key-dialog.tsx";
import { EmptyState, Page, SkeletonRows } from "../parts/page.tsx";
import { type Key, useKeysQuery } from "../data/queries.ts";
import {
  nextKeySort,
  parseKeySort,
  type KeySort,
  type KeySortColumn,
  sortKeys,
  formatKeySort,
} from "../data/key-sort.ts";

const states = ["all", "active", "inactive"] as const;
type State = (typeof states)[number];
const stateOptions = [
  { value: "all", label: "All" },
  { value: "active", label: "Active" },
  { value: "inactive", label: "Inactive" },
] as const;

type Filters = { q?: string; state?: string; sort?: string; new?: string };

/** `?new=1` opens the dialog for a new key, so that other pages and `n` can lead to it. */
export function KeysPage(): JSX.Element {
  const [parameters, setParameters] = useSearchParams<Filters>();
  const keys = useKeysQuery();
  const [deleting, setDeleting] = createSignal<Key>();

  const filter = (): string => parameters.q ?? "";
  const state = (): State => states.find((one) => one === parameters.state) ?? "all";
  const sort = createMemo(() => parseKeySort(parameters.sort));
  const isFiltered = (): boolean => filter().trim() !== "" || state() !== "all";
  const matching = createMemo(() =>
    sortKeys(
      (keys.data ?? []).filter((key) => matches(key, filter(), state())),
      sort(),
    ),
  );
  const openNew = (open: boolean): void => setParameters({ new: open ? "1" : undefined }, { replace: true });

  return (
    <Page
      title="API keys"
      queries={[keys]}
      actions={
        <button class="button primary" type="button" title="New key (n)" onClick={() => openNew(true)}>
          <Icon name="plus" />
          New key
        </button>
      }
    >
      <Show when={keys.data?.length !== 0} fallback={<NoKeys onCreate={() => openNew(true)} />}>
        <div class="toolbar">
          <FilterField
            label="Filter keys by name"
            value={filter()}
            onInput={(text) => setParameters({ q: text }, { replace: true })}
          />
          <SegmentedControl
            label="State"
            options={stateOptions}
            value={state()}
            onChange={(chosen) => setParameters({ state: chosen === "all" ? undefined : chosen }, { replace: true })}
          />
          <Show when={keys.data}>
            {(all) => (
              <p class="toolbar-note" role="status">
                {isFiltered() ? `${matching().length} of ${plural(all().length, "key")}` : plural(all().length, "key")}
              </p>
            )}
          </Show>
        </div>
        <section class="panel" aria-label="API keys">
          <Show
            when={keys.data === undefined || matching().length > 0}
            fallback={
              <EmptyState title="No key matches.">
                <button
                  class="button"
                  type="button"
                  onClick={() => setParameters({ q: undefined, state: undefined }, { replace: true })}
                >
                  Clear the filter
                </button>
              </EmptyState>
            }
          >
            <KeyTable
              keys={keys.data === undefined ? undefined : matching()}
              sort={sort()}
              onSort={(next) => setParameters({ sort: formatKeySort(next) }, { replace: true })}
              onDelete={setDeleting}
            />
          </Show>
        </section>
      </Show>

      <Show when={parameters.new}>
        <NewKeyDialog onClose={() => openNew(false)} />
      </Show>
      <Show when={deleting()} keyed>
        {(key) => <DeleteKeyDialog key={key} onClose={() => setDeleting(undefined)} />}
      </Show>
    </Page>
  );
}

const matches = (key: Key, filter: string, state: State): boolean =>
  key.name.toLowerCase().includes(filter.trim().toLowerCase()) &&
  (state === "all" || key.is_active === (state === "active"));

interface KeyTableProps {
  /** Undefined while they load. */
  keys: Key[] | undefined;
  sort: KeySort;
  onSort: (next: KeySort) => void;
  onDelete: (key: Key) => void;
}

function KeyTable(props: KeyTableProps): JSX.Element {
  const slice = createInfiniteScroll(() => props.keys ?? []);
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone keys">
          <caption class="visually-hidden">API keys</caption>
          <KeyTableHead sort={props.sort} onSort={(next) => props.onSort(next)} />
          <tbody>
            <Show when={props.keys} fallback={<SkeletonRows columns={8} />}>
              <For each={slice.shown()}>{(key) => <KeyRow key={key} onDelete={() => props.onDelete(key)} />}</For>
            </Show>
          </tbody>
        </table>
      </div>
      <MoreRows scroll={slice} />
    </>
  );
}

function KeyTableHead(props: { sort: KeySort; onSort: (next: KeySort) => void }): JSX.Element {
  const Head = (head: { column: KeySortColumn; label: string; number?: boolean }): JSX.Element => (
    <th
      scope="col"
      classList={{ number: head.number ?? false }}
      aria-sort={props.sort.column === head.column ? props.sort.direction : undefined}
    >
      <button class="sort" type="button" onClick={() => props.onSort(nextKeySort(props.sort, head.column))}>
        {head.label}
      </button>
    </th>
  );
  return (
    <thead>
      <tr>
        <Head column="name" label="Name" />
        <th scope="col">Key</th>
        <th scope="col">Active</th>
        <Head column="used" label="Last used" />
        <Head column="requests" label="Requests" number />
        <Head column="input" label="Input tokens" number />
        <Head column="output" label="Output tokens" number />
        <th scope="col">
          <span class="visually-hidden">Actions</span>
        </th>
      </tr>
    </thead>
  );
}

function NoKeys(props: { onCreate: () => void }): JSX.Element {
  return (
    <section class="panel" aria-label="API keys">
      <EmptyState title="No API keys yet">
        <p>
          A client needs a key to reach the backend through Tollgate. Make one for each application or person, so that
          their use can be told apart.
        </p>
        <button class="button primary" type="button" onClick={() => props.onCreate()}>
          <Icon name="plus" />
          Create the first key
        </button>
      </EmptyState>
    </section>
  );
}
