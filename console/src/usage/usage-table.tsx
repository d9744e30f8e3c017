import { A } from "@solidjs/router";
import { createMemo, type JSX, Match, Show, Switch } from "solid-js";
import { dayMs, parseSeoulMinute, seoulMinute } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { sameRequest } from "../lib/series.ts";
import { dayLabel, spanLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { useUrlParameters } from "../lib/url-parameters.ts";
import { useHasUsers, useStatesQuery, useTeamsQuery } from "../queries.ts";
import { CsvButton, SegmentedControl } from "../ui/controls.tsx";
import { CostCell, NumberCell, NumberHeads } from "../ui/number-columns.tsx";
import { EmptyState, Panel } from "../ui/panel.tsx";
import { SumsTable } from "../ui/sums-table.tsx";
import { changeOf, type Group, groups, isFilterName, noUsage, type ReportRow, reportCsv, type Sums } from "./report.ts";
import { type Report, rangeOf, type ReportRequest, useReportQuery } from "./report-queries.ts";
import type { UsageFilter } from "./usage-filters.ts";

/** The table of usage over a range, and the period before it. */
export interface ReportState {
  query: ReturnType<typeof useReportQuery>;
  request: () => ReportRequest;
  /** Whether it is known what it is grouped by. */
  isReady: () => boolean;
  /** Undefined while it loads. */
  report: () => Report | undefined;
  /** The groups that have rows. */
  offered: () => Group[];
}

interface Chosen extends Omit<ReportRequest, "by"> {
  /** What the URL says. */
  by: string | undefined;
}

const isPossible = (group: Group, filter: UsageFilter): boolean => {
  if (group === "key_model") return filter.key === undefined && filter.model === undefined;
  // The request log knows neither tags nor owners.
  if (group === "client") return filter.tag === undefined && filter.owner === undefined;
  return !isFilterName(group) || filter[group] === undefined;
};

/** By which it is grouped before somebody chooses. */
const firstGroups: ReadonlySet<Group> = new Set(["team", "key", "model", "day"]);

/** @param among what may be grouped by; the first that is possible, unless the URL says another */
export function useReport(chosen: () => Chosen, among: readonly Group[] = Object.keys(groups) as Group[]): ReportState {
  const teams = useTeamsQuery();
  const hasUsers = useHasUsers();
  const isReady = (): boolean => teams.data !== undefined || teams.isError;
  const hasTeams = (): boolean => (teams.data?.length ?? 0) > 0;
  const possible = (): Group[] => among.filter((group) => isPossible(group, chosen().filter));
  const request = createMemo(
    (): ReportRequest => {
      const { range, filter, by } = chosen();
      const first = possible().find((group) => firstGroups.has(group) && (group !== "team" || hasTeams()));
      return { range, filter, by: possible().find((group) => group === by) ?? first ?? "day" };
    },
    undefined,
    { equals: sameRequest },
  );
  const query = useReportQuery(request, isReady);
  const hasRows = (group: Group): boolean => {
    if (group === request().by) return true;
    if (group === "team") return hasTeams();
    if (group === "user") return hasUsers();
    return (group !== "tag" && group !== "owner") || (query.data?.labels.includes(group) ?? false);
  };
  return {
    query,
    request,
    isReady,
    report: () => query.data,
    offered: () => possible().filter(hasRows),
  };
}

interface TableProps {
  state: ReportState;
  /** The colour of a row in a chart above; 0: none. */
  colourOf?: (id: string) => number;
  /** Shows what a row is of, and nothing else; left out, rows lead nowhere. */
  onOpen?: (by: Group, value: string) => void;
  actions?: JSX.Element;
  onGroup: (by: Group) => void;
  /** Whether the page tells of what could not be refreshed. */
  isReported?: boolean;
}

/** Tokens, what of them came from a cache, cost and change, by what the user chooses; and its CSV. */
export function UsageTable(props: TableProps): JSX.Element {
  const by = (): Group => props.state.report()?.request.by ?? props.state.request().by;
  const earlier = createMemo(() => {
    const before = props.state.report()?.before;
    return before && new Map(before.rows.map((row): [string, Sums] => [row.id, row]));
  });
  const columns = (): Columns => ({
    by: by(),
    currency: currencyOf(props.state.report()),
    hasCache: (props.state.report()?.total.from_cache_tokens ?? 0) > 0,
    earlier: earlier(),
  });
  const rows = (): readonly ReportRow[] | undefined => props.state.report()?.rows;
  // Not within the JSX: read by a click, a condition there would create a memo outside of a root.
  const current = (): readonly ReportRow[] => (props.state.query.isPlaceholderData ? [] : (rows() ?? []));
  const options = () => props.state.offered().map((value) => ({ value, label: groups[value] }));
  return (
    <Panel
      title="Usage and cost"
      {...(props.isReported !== true && { query: props.state.query })}
      actions={
        <>
          <SegmentedControl
            label="Group by"
            options={options()}
            value={props.state.request().by}
            onChange={props.onGroup}
          />
          {props.actions}
          <CsvButton
            disabled={current().length === 0}
            fileName={csvName(props.state.report())}
            text={() => reportCsv(current(), by(), earlier())}
          />
        </>
      }
    >
      <SumsTable
        caption="Usage and cost"
        query={props.state.query}
        rows={rows()}
        idOf={(row) => row.id}
        choice={JSON.stringify(props.state.request())}
        span={by() === "key_model" ? 2 : 1}
        numbers={4}
        head={<Heads {...columns()} />}
        foot={
          <Show when={props.state.report()}>
            {(report) => <SumCells sums={report().total} before={report().before?.total} {...columns()} />}
          </Show>
        }
        empty={
          <EmptyState title="No requests in this period">
            <p>Choose a longer range, or send a request with one of the API keys.</p>
          </EmptyState>
        }
      >
        {(row) => (
          <>
            <NameCell {...props} row={row()} by={by()} />
            <Show when={by() === "key_model"}>
              <td class="cut" data-label="Model">
                {row().model}
              </td>
            </Show>
            <SumCells sums={row()} before={earlier() && (earlier()?.get(row().id) ?? noUsage)} {...columns()} />
          </>
        )}
      </SumsTable>
      <Notes state={props.state} />
    </Panel>
  );
}

/** Undefined without prices, and of models without one: there is nothing to show. */
export const currencyOf = (report: Report | undefined): string | undefined =>
  report === undefined || report.total.cost === null ? undefined : (report.currency ?? undefined);

const csvName = (report: Report | undefined): string =>
  report === undefined
    ? "usage.csv"
    : `usage-by-${report.request.by}-${seoulMinute(report.span.from)}-to-${seoulMinute(report.span.to)}.csv`.replaceAll(
        ":",
        "",
      );

interface Columns {
  by: Group;
  currency: string | undefined;
  hasCache: boolean;
  /** The rows of the period before; undefined without one. */
  earlier: ReadonlyMap<string, Sums> | undefined;
}

const Heads = (props: Columns): JSX.Element => (
  <>
    <th scope="col">{props.by === "key_model" ? "Key" : groups[props.by]}</th>
    <Show when={props.by === "key_model"}>
      <th scope="col">Model</th>
    </Show>
    <NumberHeads
      labels={[
        "Requests",
        "Input",
        ...(props.hasCache ? ["Of which from cache"] : []),
        "Output",
        ...(props.currency === undefined ? [] : ["Cost"]),
        ...(props.earlier === undefined ? [] : ["Change"]),
      ]}
    />
  </>
);

function NameCell(props: TableProps & { row: ReportRow; by: Group }): JSX.Element {
  const colour = (): number => props.colourOf?.(props.row.id) ?? 0;
  return (
    <th scope="row" class="cut" title={props.row.name}>
      <Show when={colour() > 0}>
        <span class={`swatch series-${colour()}`} />{" "}
      </Show>
      <Show when={props.row.value !== undefined && props.onOpen} fallback={<bdi>{props.row.name}</bdi>}>
        {(open) => (
          <button class="link" type="button" onClick={() => open()(props.by, props.row.value ?? "")}>
            <bdi>{props.row.name}</bdi>
          </button>
        )}
      </Show>
    </th>
  );
}

/** @param props the sums before are undefined where nothing is compared */
const SumCells = (props: Columns & { sums: Sums; before: Sums | undefined }): JSX.Element => (
  <>
    <NumberCell label="Requests" value={props.sums.request_count} />
    <NumberCell label="Input" value={props.sums.prompt_tokens} />
    <Show when={props.hasCache}>
      <NumberCell label="Of which from cache" value={props.sums.from_cache_tokens} />
    </Show>
    <NumberCell label="Output" value={props.sums.output_tokens} />
    <CostCell cost={props.sums} currency={props.currency} />
    <Show when={props.before}>
      {(before) => (
        <td class="number" data-label="Change">
          {changeOf(props.sums, before()) ?? "New"}
        </td>
      )}
    </Show>
  </>
);

function Notes(props: { state: ReportState }): JSX.Element {
  const states = useStatesQuery();
  const teams = useTeamsQuery();
  const report = () => props.state.report();
  const by = (): Group | undefined => report()?.request.by;
  /** The times that lie within or after what is shown, as a day. */
  const dayAfter = (at: number | undefined, bound: "from" | "to"): string | undefined =>
    at !== undefined && at > (report()?.span[bound] ?? at) ? dayLabel(at) : undefined;
  const firstTeamAt = (): number | undefined => {
    const times = teams.data?.map((team) => Date.parse(team.created_at)) ?? [];
    const tellsTeams = by() === "team" || report()?.request.filter.team !== undefined;
    return tellsTeams && times.length > 0 ? Math.min(...times) : undefined;
  };
  const isProvisional = (): boolean =>
    states.data?.states.some(({ kind }) => kind === "counts_waiting" || kind === "database_away") ?? false;
  return (
    <p class="footnote">
      Input includes what came from a cache, as far as backends report it.{" "}
      <Show when={isProvisional()}>
        <b>Provisional</b>: counts wait to be written.{" "}
      </Show>
      <Show when={report()?.before}>{(before) => <>Change is against {wholeSpanLabel(before().span)}. </>}</Show>
      <Show when={currencyOf(report()) && dayAfter(report()?.pricesChangedAt, "to")}>
        {(day) => <>Prices changed on {day()}. </>}
      </Show>
      <Show when={dayAfter(firstTeamAt(), "from")}>
        {(day) => <>Teams are counted since {day()}; before that, group by tag or owner. </>}
      </Show>
      <Switch>
        <Match when={by() === "tag"}>A key with several tags is in the row of each: the rows add up to more. </Match>
        <Match when={by() === "client"}>
          By the request log
          <Show when={dayAfter(report()?.logFrom, "from")}>{(day) => <>, which is kept since {day()}</>}</Show>.{" "}
        </Match>
      </Switch>
      <Show when={report()?.currency === null}>
        <A href="/settings/prices">Enter prices</A> to see costs.
      </Show>
    </p>
  );
}

/** Whole days by their names. */
function wholeSpanLabel({ from, to }: TimeSpan): string {
  const isDay = (at: number): boolean => seoulMinute(at).endsWith("T00:00");
  if (!isDay(from)) return spanLabel(from, to);
  const last = dayLabel(to - 1);
  const days = dayLabel(from) === last ? last : `${dayLabel(from)} to ${last}`;
  return isDay(to) ? days : `${days}, ${seoulMinute(to).slice(11)} KST`;
}

export const spanOfDay = (day: string): TimeSpan => {
  const from = parseSeoulMinute(`${day}T00:00`) ?? serverNow();
  return { from, to: from + dayMs };
};

const dayOptions = (["today", "7d", "30d", "90d", "365d"] as const).map((value) => ({
  value,
  label: value === "today" ? "Today" : value.replace("d", " d"),
}));

/** The table of one key or team, with its own range. */
export function UsageOf(props: { filter: UsageFilter }): JSX.Element {
  const [parameters, setParameters] = useUrlParameters<"by" | "span">();
  const preset = () => dayOptions.find(({ value }) => value === parameters.span)?.value ?? "30d";
  const state = useReport(
    () => ({ range: rangeOf(preset()), filter: props.filter, by: parameters.by }),
    ["model", "key", "key_model", "user", "day"],
  );
  const set = (changed: Record<string, string | undefined>): void => setParameters(changed, { replace: true });
  return (
    <UsageTable
      state={state}
      onGroup={(by) => set({ by })}
      actions={
        <SegmentedControl
          label="Days of usage"
          options={dayOptions}
          value={preset()}
          onChange={(span) => set({ span: span === "30d" ? undefined : span })}
        />
      }
    />
  );
}
