// API keys: their list (here), one key, changes of one or many, and the page of a key's holder (`own-key-page.tsx`).
//
//   dialog of secrets: closed -> form -> secret -> saved -> closed (`new-key.ts`)
//
// It keeps true: a secret that cannot be shown again stays until the user closes it; neither Back nor a logout in
// another tab takes it away. Filters and sort are part of the URL. The key that a holder enters stays in memory.

import { createEffect, createMemo, createSignal, type JSX, Match, onCleanup, Show, Switch, untrack } from "solid-js";
import { downloadCsv } from "../lib/csv.ts";
import { plural } from "../lib/format.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { fetchKeys, firstKeys, type Key, useFirstKeysQuery, useHasTeams, useKeysQuery } from "../queries.ts";
import { Button, CsvButton, FilterField, SegmentedControl } from "../ui/controls.tsx";
import { FailedDialog, lazyPart } from "../ui/lazy.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState, NotLoaded } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import type { UsageBuckets } from "../usage/usage-buckets.ts";
import { Bulk, useSelected } from "./bulk-bar.tsx";
import { usedLimits } from "./key-limits.ts";
import { keyCsv, sortKeys } from "./key-list.ts";
import { KeyTable, useKeySparksQuery } from "./key-table.tsx";
import { closeNewKeyDialogUnlessSecret, createdKey, openImportForm, openNewKeyForm, setCreatedKey } from "./new-key.ts";
import { isLimitState, type KeyFilters, useKeyFilters } from "./use-key-filters.ts";

// Less often opened, so not part of the first view's script.
const BulkDialog = lazyPart(
  async () => (await import("./bulk-dialog.tsx")).BulkDialog,
  (state, props) => <FailedDialog {...state} title="API keys" onClose={() => props.onClose()} />,
);
const DeleteKeyDialog = lazyPart(
  async () => (await import("./delete-key-dialog.tsx")).DeleteKeyDialog,
  (state, props) => <FailedDialog {...state} title={props.key.name} onClose={() => props.onClose()} />,
);
const KeyLimitsDialog = lazyPart(
  async () => (await import("./key-limits-dialog.tsx")).KeyLimitsDialog,
  (state, props) => <FailedDialog {...state} title={props.key.name} onClose={() => props.onClose()} />,
);

const stateOptions = [
  { value: "all", label: "All" },
  { value: "active", label: "Active" },
  { value: "inactive", label: "Inactive" },
] as const;
/** Offered once a key has limits. */
const limitOptions = [
  { value: "near-limit", label: "Near its limit" },
  { value: "at-limit", label: "At a limit" },
  { value: "refused", label: "Refused today" },
] as const;

/**
 * `?new=1` opens the dialog for a new key, so that other pages and the shortcut `n` can link to it. It leaves the URL at
 * once, so that a reload does not open an empty form instead of a secret.
 */
export function KeysPage(): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"new">();
  const filters = useKeyFilters();
  const { keys, hasMore, needAll } = useKeyList(filters);
  const hasTeams = useHasTeams();
  const sparks = useKeySparksQuery(() => (keys().data?.length ?? 0) > 0);
  const [deleting, setDeleting] = createSignal<Key>();
  const [limiting, setLimiting] = createSignal<Key>();
  createEffect(() => {
    if (parameters.new === undefined) return;
    openNewKeyForm();
    setParameters({ new: undefined }, { replace: true });
  });
  onCleanup(() => {
    closeNewKeyDialogUnlessSecret();
    setCreatedKey(undefined);
  });

  return (
    <Page
      title="API keys"
      help="keys-and-limits"
      sources={[
        { name: "API keys", query: keys() },
        { name: "Tokens of the last 24 hours", query: sparks, slow: true },
      ]}
      actions={
        <>
          <Button onClick={openImportForm}>Import</Button>
          <Button icon="plus" tone="primary" title="New key (n)" onClick={openNewKeyForm}>
            New key
          </Button>
        </>
      }
    >
      <Show when={hasTeams()}>
        <SectionTabs section="keys" label="API keys" />
      </Show>
      <Switch
        fallback={
          <FilteredKeys
            keys={keys().data}
            hasMore={hasMore()}
            onNeedAll={needAll}
            filters={filters}
            sparks={sparks.data}
            onLimits={setLimiting}
            onDelete={setDeleting}
          />
        }
      >
        <Match when={keys().data?.length === 0}>
          <NoKeys onCreate={openNewKeyForm} />
        </Match>
        <Match when={keys().data === undefined && keys().isError}>
          <section class="panel" aria-label="API keys">
            <NotLoaded query={keys()} />
          </section>
        </Match>
      </Switch>

      <Show when={limiting()} keyed>
        {(key) => <KeyLimitsDialog key={key} onClose={() => setLimiting(undefined)} />}
      </Show>
      <Show when={deleting()} keyed>
        {(key) => <DeleteKeyDialog key={key} onClose={() => setDeleting(undefined)} />}
      </Show>
    </Page>
  );
}

/** The first keys, until something needs all: a filter, a sort, or the end of the list. */
function useKeyList(filters: KeyFilters) {
  const [isNeeded, setNeeded] = createSignal(false);
  const [isPart, setPart] = createSignal(false);
  const chooses = (): boolean => filters.isFiltered() || filters.isSorted() || createdKey() !== undefined;
  const needsAll = createMemo<boolean>((before) => before || (isPart() && (isNeeded() || chooses())), false);
  const first = useFirstKeysQuery(() => !needsAll());
  createEffect(() => first.data?.length === firstKeys && setPart(true));
  const all = useKeysQuery(needsAll);
  return {
    /** What is on the screen stays until all are there, unless others are chosen. */
    keys: () => (needsAll() && (all.data !== undefined || chooses()) ? all : first),
    hasMore: () => isPart() && !(needsAll() && all.data !== undefined),
    needAll: () => setNeeded(true),
  };
}

/** @param props the keys and their tokens are undefined while they load */
function FilteredKeys(props: {
  keys: Key[] | undefined;
  hasMore: boolean;
  onNeedAll: () => void;
  filters: KeyFilters;
  sparks: UsageBuckets | undefined;
  onLimits: (key: Key) => void;
  onDelete: (key: Key) => void;
}): JSX.Element {
  const { filters } = untrack(() => props);
  const matching = createMemo(() => {
    const sorted = props.keys && sortKeys(props.keys.filter(filters.matches), filters.keySort());
    return sorted?.toSorted((a, b) => Number(b.id === createdKey()) - Number(a.id === createdKey()));
  });
  const selected = useSelected(() => matching() ?? []);
  // Those of whom one wants all.
  createEffect(() => selected.list().length > 0 && props.onNeedAll());
  return (
    <div class="keys-with-selection">
      <Toolbar
        filters={filters}
        keyCount={props.keys?.length}
        hasMore={props.hasMore}
        hasLimits={props.hasMore || (props.keys?.some((key) => usedLimits(key).length > 0) ?? false)}
        matching={matching()}
      />
      <section class="panel" aria-label="API keys">
        <Show when={matching()?.length !== 0} fallback={<NoMatch onClear={filters.clear} />}>
          <KeyTable
            keys={matching()}
            paged={{ hasMore: () => props.hasMore, loadMore: () => props.onNeedAll() }}
            choice={JSON.stringify([filters.search(), filters.state(), filters.keySort()])}
            sort={filters.keySort()}
            onSort={filters.setKeySort}
            selected={selected}
            sparks={props.sparks}
            onLimits={props.onLimits}
            onDelete={props.onDelete}
          />
        </Show>
      </section>
      <Bulk
        noun="key"
        dialog={BulkDialog}
        selected={selected}
        rows={matching() ?? []}
        onExport={(keys) => downloadCsv("tollgate-selected-keys.csv", keyCsv(keys))}
      />
    </div>
  );
}

/** @param props the count and the matches are undefined while the keys load */
function Toolbar(props: {
  filters: KeyFilters;
  keyCount: number | undefined;
  hasMore: boolean;
  hasLimits: boolean;
  matching: Key[] | undefined;
}): JSX.Element {
  return (
    <div class="toolbar">
      <FilterField
        label="Filter by name, tag or key"
        value={props.filters.search()}
        onInput={(text) => props.filters.setSearch(text)}
      />
      <SegmentedControl
        label="State"
        options={
          props.hasLimits || isLimitState(props.filters.state()) ? [...stateOptions, ...limitOptions] : stateOptions
        }
        value={props.filters.state()}
        onChange={(state) => props.filters.setState(state)}
      />
      <div class="actions">
        <p class="toolbar-note" role="status">
          <Show when={props.keyCount}>
            {(keyCount) => (
              <>
                {props.filters.isFiltered() ? `${props.matching?.length} of ` : ""}
                {props.hasMore ? "The first " : ""}
                {plural(keyCount(), "key")}
              </>
            )}
          </Show>
        </p>
        <CsvButton
          disabled={(props.matching?.length ?? 0) === 0}
          fileName="api-keys.csv"
          text={() => (props.hasMore ? fetchKeys().then(keyCsv) : keyCsv(props.matching ?? []))}
        />
      </div>
    </div>
  );
}

const NoMatch = (props: { onClear: () => void }): JSX.Element => (
  <EmptyState title="No matching keys">
    <Button onClick={() => props.onClear()}>Clear filter</Button>
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
        <Button icon="plus" tone="primary" onClick={() => props.onCreate()}>
          Create the first key
        </Button>
      </EmptyState>
    </section>
  );
}
