import { useSearchParams } from "@solidjs/router";
import { createMemo, createSignal, type JSX, Show } from "solid-js";
import { plural } from "../data/format.ts";
import { sortKeys } from "../data/key-sort.ts";
import { type Key, useKeysQuery } from "../data/queries.ts";
import { type KeyFilters, useKeyFilters } from "../data/use-key-filters.ts";
import { FilterField, SegmentedControl } from "../parts/controls.tsx";
import { DeleteKeyDialog } from "../parts/delete-key-dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { KeyTable } from "../parts/key-table.tsx";
import { NewKeyDialog } from "../parts/new-key-dialog.tsx";
import { Page } from "../parts/page.tsx";
import { EmptyState } from "../parts/panel.tsx";

const stateOptions = [
  { value: "all", label: "All" },
  { value: "active", label: "Active" },
  { value: "inactive", label: "Inactive" },
] as const;

/** `?new=1` opens the dialog for a new key, so that other pages and the shortcut `n` can link to it. */
export function KeysPage(): JSX.Element {
  const [parameters, setParameters] = useSearchParams<{ new?: string }>();
  const keys = useKeysQuery();
  const [deleting, setDeleting] = createSignal<Key>();
  const setNewKeyOpen = (open: boolean): void => setParameters({ new: open ? "1" : undefined }, { replace: true });

  return (
    <Page
      title="API keys"
      queries={[keys]}
      actions={
        <button class="button primary" type="button" title="New key (n)" onClick={() => setNewKeyOpen(true)}>
          <Icon name="plus" />
          New key
        </button>
      }
    >
      <Show when={keys.data?.length !== 0} fallback={<NoKeys onCreate={() => setNewKeyOpen(true)} />}>
        <FilteredKeys keys={keys.data} onDelete={setDeleting} />
      </Show>

      <Show when={parameters.new}>
        <NewKeyDialog onClose={() => setNewKeyOpen(false)} />
      </Show>
      <Show when={deleting()} keyed>
        {(key) => <DeleteKeyDialog key={key} onClose={() => setDeleting(undefined)} />}
      </Show>
    </Page>
  );
}

/** @param props.keys undefined while they load */
function FilteredKeys(props: { keys: Key[] | undefined; onDelete: (key: Key) => void }): JSX.Element {
  const filters = useKeyFilters();
  const matching = createMemo(() => props.keys && sortKeys(props.keys.filter(filters.matches), filters.keySort()));
  return (
    <>
      <Toolbar filters={filters} keyCount={props.keys?.length} matchCount={matching()?.length} />
      <section class="panel" aria-label="API keys">
        <Show when={matching()?.length !== 0} fallback={<NoMatch onClear={filters.clear} />}>
          <KeyTable keys={matching()} sort={filters.keySort()} onSort={filters.setKeySort} onDelete={props.onDelete} />
        </Show>
      </section>
    </>
  );
}

/** @param props the counts are undefined while the keys load */
function Toolbar(props: {
  filters: KeyFilters;
  keyCount: number | undefined;
  matchCount: number | undefined;
}): JSX.Element {
  return (
    <div class="toolbar">
      <FilterField
        label="Filter keys by name"
        value={props.filters.search()}
        onInput={(text) => props.filters.setSearch(text)}
      />
      <SegmentedControl
        label="State"
        options={stateOptions}
        value={props.filters.state()}
        onChange={(state) => props.filters.setState(state)}
      />
      <Show when={props.keyCount}>
        {(keyCount) => (
          <p class="toolbar-note" role="status">
            {props.filters.isFiltered() ? `${props.matchCount} of ` : ""}
            {plural(keyCount(), "key")}
          </p>
        )}
      </Show>
    </div>
  );
}

const NoMatch = (props: { onClear: () => void }): JSX.Element => (
  <EmptyState title="No matching keys">
    <button class="button" type="button" onClick={() => props.onClear()}>
      Clear filter
    </button>
  </EmptyState>
);

function NoKeys(props: { onCreate: () => void }): JSX.Element {
  return (
    <section class="panel" aria-label="API keys">
      <EmptyState title="No API keys yet">
        <p>
          Clients need a key to reach the backend through Tollgate. Create one for each application or person to see
          their usage separately.
        </p>
        <button class="button primary" type="button" onClick={() => props.onCreate()}>
          <Icon name="plus" />
          Create the first key
        </button>
      </EmptyState>
    </section>
  );
}
