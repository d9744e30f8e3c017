import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { count, plural, shareOf } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { type ClientRules, useClientRulesQuery } from "../queries.ts";
import { CsvButton } from "../ui/controls.tsx";
import { HandbookLink } from "../ui/handbook-link.tsx";
import { Panel } from "../ui/panel.tsx";
import { SumsTable } from "../ui/sums-table.tsx";
import { type Grouping, type GroupsQuery, type RequestGroups, useRequestGroupsQuery } from "./queries.ts";
import { classesSentence, findLowCache, groupings, groupName, type GroupRow, groupsCsv } from "./request-groups.ts";
import type { RequestFilterName } from "./request-filters.ts";
import "../styles/lazy-pages.css";
import { CostCell, type HeadList, NumberCell, numbers } from "../ui/table.tsx";

interface GroupsPanelProps {
  title: string;
  query: GroupsQuery;
  actions?: JSX.Element;
  /** The address of the requests that a filter selects beside what the panel is of. */
  href: (name: RequestFilterName, value: string) => string;
  /** In place of no requests. */
  empty: JSX.Element;
}

/** The requests of the log by what they have in common. */
export function GroupsPanel(props: GroupsPanelProps): JSX.Element {
  const query = useRequestGroupsQuery(() => props.query);
  // Not within the JSX: read by a click, a condition there would create a memo outside of a root.
  const current = (): readonly GroupRow[] => (query.isPlaceholderData ? [] : (query.data?.rows ?? []));
  return (
    <Panel
      title={props.title}
      query={query}
      hint={query.data && classesSentence(query.data)}
      actions={
        <>
          {props.actions}
          <CsvButton
            disabled={current().length === 0}
            fileName={`requests-by-${props.query.by}.csv`}
            text={() => groupsCsv(current())}
          />
        </>
      }
    >
      <SumsTable
        caption="Requests by what they have in common"
        query={query}
        rows={query.data?.rows}
        choice={JSON.stringify(props.query)}
        span={1}
        idOf={(row) => `${row.name} ${row.id}`}
        heads={headsOf(query.data, props.query.by)}
        foot={<Show when={query.data}>{(groups) => <Sums groups={groups()} row={groups().total} />}</Show>}
        empty={props.empty}
      >
        {(row) => (
          <>
            <GroupName row={row()} by={query.data?.by ?? props.query.by} href={props.href} />
            <Show when={query.data}>{(groups) => <Sums groups={groups()} row={row()} />}</Show>
          </>
        )}
      </SumsTable>
      <Show when={query.data?.by === "program" ? query.data : undefined}>
        {(groups) => <CacheAdvice groups={groups()} />}
      </Show>
      <Notes groups={query.data} />
    </Panel>
  );
}

const hasLosses = (groups: RequestGroups | undefined): boolean => (groups?.total.lost_count ?? 0) > 0;

const headsOf = (groups: RequestGroups | undefined, by: Grouping): HeadList => [
  groupings[groups?.by ?? by].label,
  ...numbers("Requests", "Input", "Share of input", "From cache", "Share from cache"),
  ...(hasLosses(groups) ? numbers("Cache losses") : []),
  ...numbers("Output"),
  ...(groups?.currency ? numbers("Cost") : []),
];

function GroupName(props: Pick<GroupsPanelProps, "href"> & { row: GroupRow; by: Grouping }): JSX.Element {
  const group = (): ReturnType<typeof groupName> => groupName(props.by, props.row);
  return (
    <th scope="row" class="cut" title={group().label}>
      <Show when={group().filter} fallback={<span class="faint">{group().label}</span>}>
        {(value) => (
          <A href={props.href(groupings[props.by].filter, value())}>
            <bdi>{group().label}</bdi>
          </A>
        )}
      </Show>
    </th>
  );
}

const Sums = (props: { groups: RequestGroups; row: RequestGroups["total"] }): JSX.Element => (
  <>
    <NumberCell label="Requests" value={props.row.request_count} />
    <NumberCell label="Input" value={props.row.prompt_tokens} />
    <NumberCell label="Share of input" value={shareOf(props.row.prompt_tokens, props.groups.total.prompt_tokens)} />
    <NumberCell label="From cache" value={props.row.from_cache_tokens} />
    <NumberCell label="Share from cache" value={shareOf(props.row.from_cache_tokens, props.row.prompt_tokens)} />
    <Show when={hasLosses(props.groups)}>
      <NumberCell label="Cache losses" value={props.row.lost_count} />
    </Show>
    <NumberCell label="Output" value={props.row.output_tokens} />
    <CostCell cost={props.row} currency={props.groups.currency ?? undefined} />
  </>
);

const Notes = (props: { groups: RequestGroups | undefined }): JSX.Element => (
  <p class="footnote">
    By the request log. Input includes what came from the backend’s cache; only what backends report counts as from
    cache.{" "}
    <Show when={props.groups?.by === "class"}>
      Claude Code says what a request is for with the <A href="/help">settings of Help</A>.{" "}
    </Show>
    <Show when={props.groups?.by === "conversation"}>
      Conversations are told apart where there are several backends.{" "}
    </Show>
    <Show when={props.groups}>
      {(groups) => (
        <>
          <Show when={groups().group_count > groups().rows.length}>
            Of {plural(groups().group_count, "group")}, these {count(groups().rows.length)} have most input.{" "}
          </Show>
          <Show when={groups().counted_from}>
            {(from) => <>Requests before {dateTimeLabel(Date.parse(from()))} are left out: they are too many. </>}
          </Show>
        </>
      )}
    </Show>
    <HandbookLink to="models-and-backends#why-a-cache-was-not-used">Why a cache was not used</HandbookLink>
  </p>
);

/** A client whose prompts do not begin alike makes the backend read all of them anew. */
function CacheAdvice(props: { groups: RequestGroups }): JSX.Element {
  const low = (): GroupRow | undefined => findLowCache(props.groups.rows);
  const isReported = (): boolean => props.groups.total.from_cache_tokens > 0;
  const rules = useClientRulesQuery(() => low() !== undefined);
  const mending = (): string[] => rulesOfProgram(rules.data?.rows ?? [], low()?.name);
  return (
    // Where nothing was reported at all, the backends may keep to themselves what they had cached.
    <Show when={(isReported() || mending().length > 0) && low()}>
      {(row) => (
        <p class="footnote" role="note">
          <b>{shareOf(row().from_cache_tokens, row().prompt_tokens)}</b> of the input of {row().name} came from a cache.{" "}
          {cacheAdvice(mending(), isReported())}{" "}
          <HandbookLink to="agents#what-agents-send">What agents send</HandbookLink>
        </p>
      )}
    </Show>
  );
}

const rulesOfProgram = (rows: ClientRules["rows"], program: string | null | undefined): string[] => [
  ...new Set(rows.flatMap(({ client, rules }) => (client.split("/", 1)[0] === program ? rules : []))),
];

function cacheAdvice(rules: readonly string[], isReported: boolean): string {
  const unless = isReported ? "" : " Or the backend does not report what its cache had.";
  if (rules.length === 0) return `Its prompts may not begin alike from request to request.${unless}`;
  return `What it sends changes from request to request: set CLIENT_RULES to auto, or add ${rules.join(" and ")}.${unless}`;
}
