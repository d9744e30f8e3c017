import { createMemo, createUniqueId, For, type JSX, Show } from "solid-js";
import { count } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { Button, LabelledInput } from "../ui/controls.tsx";
import { Icon } from "../ui/icon.tsx";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panel.tsx";
import { SectionTabs } from "../ui/section-tabs.tsx";
import { changedMembers } from "./changed-members.ts";
import { type AuditFilter, type RecordedChange, useChangesQuery } from "./queries.ts";
import "../styles/lazy-pages.css";
import { Table } from "../ui/table.tsx";

const filterNames = ["actor", "action", "target"] as const;
type FilterName = (typeof filterNames)[number];
const filterLabels: Readonly<Record<FilterName, string>> = { actor: "Who", action: "Action", target: "Target" };

/** Who changed what, latest first. */
export function ChangesPage(): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<FilterName>();
  const filter = createMemo((): AuditFilter =>
    Object.fromEntries(filterNames.flatMap((name) => (parameters[name] ? [[name, parameters[name]]] : []))),
  );
  const set = (name: FilterName, value: string): void =>
    setParameters({ [name]: value.trim() || undefined }, { replace: true });
  const changes = useChangesQuery(filter);
  const rows = (): RecordedChange[] | undefined => changes.data?.pages.flatMap((page) => page.rows);
  const scroll = createInfiniteScroll(() => rows() ?? [], {
    choice: () => JSON.stringify(filter()),
    paged: {
      hasMore: () => changes.hasNextPage,
      loadMore: () => changes.isFetching || void changes.fetchNextPage(),
    },
  });
  return (
    <Page
      title="Changes"
      help="api#the-record-of-changes"
      sources={[{ name: "Changes", query: changes, slow: true }]}
      actions={
        <a
          class="button"
          href={`/api/audit?${new URLSearchParams({ ...filter(), format: "csv" }).toString()}`}
          download="changes.csv"
        >
          <Icon name="download" />
          CSV
        </a>
      }
    >
      <SectionTabs section="settings" label="Settings" />
      <div class="filters">
        <For each={filterNames}>
          {(name) => (
            <FilterText
              label={filterLabels[name]}
              value={parameters[name] ?? ""}
              known={[...new Set(rows()?.map((row) => row[name]))]}
              onChange={(value) => set(name, value)}
            />
          )}
        </For>
      </div>
      <section class="panel" aria-label="Changes">
        <Table
          caption="Changes, latest first"
          class="changes"
          heads={["Time", "Who", "Action", "Target", "Before → after"]}
          query={changes}
          rows={rows() && scroll.shown()}
          skeleton={10}
          empty={
            <NoChanges
              isFiltered={Object.keys(filter()).length > 0}
              onClear={() =>
                setParameters(Object.fromEntries(filterNames.map((name) => [name, undefined])), { replace: true })
              }
            />
          }
        >
          {(row) => <ChangeRow row={row} onFilter={set} />}
        </Table>
        <MoreRows scroll={scroll} />
      </section>
    </Page>
  );
}

/** Matches the whole value, so it applies on Enter or when it is left; suggests those of the rows that are loaded. */
function FilterText(props: {
  label: string;
  value: string;
  known: readonly string[];
  onChange: (value: string) => void;
}): JSX.Element {
  const list = createUniqueId();
  return (
    <div class="filter-chip">
      <LabelledInput
        label={props.label}
        class=""
        value={props.value}
        placeholder="Any"
        list={list}
        maxlength="512"
        autocapitalize="none"
        spellcheck={false}
        onChange={({ currentTarget }) => props.onChange(currentTarget.value)}
      />
      <datalist id={list}>
        <For each={props.known}>{(value) => <option value={value} />}</For>
      </datalist>
    </div>
  );
}

function ChangeRow(props: { row: RecordedChange; onFilter: (name: FilterName, value: string) => void }): JSX.Element {
  const cell = (name: FilterName): JSX.Element => (
    <button class="link" type="button" title="Show these alone" onClick={() => props.onFilter(name, props.row[name])}>
      {props.row[name]}
    </button>
  );
  return (
    <tr>
      <th scope="row">
        <time datetime={props.row.at}>{dateTimeLabel(Date.parse(props.row.at))}</time>
      </th>
      <td class="text" data-label="Who">
        {cell("actor")}
        <small class="faint">{[props.row.role, props.row.address].filter(Boolean).join(", ")}</small>
      </td>
      <td data-label="Action">
        {cell("action")}
        <Show when={props.row.count > 1}> × {count(props.row.count)}</Show>
      </td>
      <td class="text" data-label="Target">
        {cell("target")}
      </td>
      <td class="text" data-label="Before → after">
        <For each={changedMembers(props.row)} fallback={<span class="faint">–</span>}>
          {({ name, before, after }) => (
            <div class="member">
              <span class="faint">{name}</span> <Show when={before !== undefined}>{before}</Show> →{" "}
              <Show when={after !== undefined} fallback={<span class="faint">none</span>}>
                {after}
              </Show>
            </div>
          )}
        </For>
      </td>
    </tr>
  );
}

const NoChanges = (props: { isFiltered: boolean; onClear: () => void }): JSX.Element => (
  <Show
    when={props.isFiltered}
    fallback={
      <EmptyState title="No changes yet">
        <p>Each change of keys, backends, prices, tokens and sessions appears here, with who made it, for 400 days.</p>
      </EmptyState>
    }
  >
    <EmptyState title="No matching changes">
      <div class="actions">
        <Button onClick={() => props.onClear()}>Clear filters</Button>
      </div>
    </EmptyState>
  </Show>
);
