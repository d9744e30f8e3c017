import { A } from "@solidjs/router";
import { createMemo, type JSX, Show } from "solid-js";
import { count } from "../lib/format.ts";
import { dayMs, parseSeoulMinute, seoulMinute } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { requestsHref } from "../lib/requests-href.ts";
import { CsvButton, SegmentedControl } from "../ui/controls.tsx";
import { EmptyState, Panel } from "../ui/panel.tsx";
import { SumsTable } from "../ui/sums-table.tsx";
import { changeOf, type Group, groups, isLogGroup, noUsage, type ReportRow, reportCsv, type Sums } from "./report.ts";
import type { Report } from "./report-queries.ts";
import { UsageNotes } from "./usage-notes.tsx";
import { currencyOf, type ReportState } from "./use-report.ts";
import { CostCell, type HeadList, NumberCell, numbers, TextCell } from "../ui/table.tsx";

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
        heads={headsOf(columns())}
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
              <TextCell label="Model" text={row().model} />
            </Show>
            <SumCells
              sums={row()}
              href={requestsOf(props.state.report(), row())}
              before={earlier() && (earlier()?.get(row().id) ?? noUsage)}
              {...columns()}
            />
          </>
        )}
      </SumsTable>
      <UsageNotes state={props.state} />
    </Panel>
  );
}

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

const headsOf = ({ by, hasCache, currency, earlier }: Columns): HeadList => [
  by === "key_model" ? "Key" : groups[by],
  by === "key_model" && "Model",
  ...numbers("Requests", "Input"),
  ...(hasCache ? numbers("Of which from cache") : []),
  ...numbers("Output"),
  ...(currency === undefined ? [] : numbers("Cost")),
  ...(earlier === undefined ? [] : numbers("Change")),
];

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
const SumCells = (
  props: Columns & { sums: Sums; before: Sums | undefined; href?: string | undefined },
): JSX.Element => (
  <>
    <Show when={props.href} fallback={<NumberCell label="Requests" value={props.sums.request_count} />}>
      {(href) => (
        <td class="number" data-label="Requests">
          <A href={href()}>{count(props.sums.request_count)}</A>
        </td>
      )}
    </Show>
    <NumberCell label="Input" value={props.sums.prompt_tokens} />
    <Show when={props.hasCache}>
      <NumberCell label="Of which from cache" value={props.sums.from_cache_tokens} />
    </Show>
    <NumberCell label="Output" value={props.sums.output_tokens} />
    <CostCell cost={props.sums} currency={props.currency} />
    <Show when={props.before}>
      {(before) => <NumberCell label="Change" value={changeOf(props.sums, before()) ?? "New"} />}
    </Show>
  </>
);

/** So far back the request log reaches, unless it is set otherwise. */
const logMs = 7 * dayMs;

/** The requests of a row, as far as the request log has them and can be filtered by what the row is of. */
function requestsOf(report: Report | undefined, { id, value }: ReportRow): string | undefined {
  if (report === undefined || report.span.from < serverNow() - logMs) return undefined;
  const { filter, by } = report.request;
  const isOfLabels = filter.tag !== undefined || filter.owner !== undefined;
  const wanted = by === "client" ? id : value;
  if (isOfLabels || !isLogGroup(by) || !wanted) return undefined;
  const { from, to } = report.span;
  const span = { since: seoulMinute(from), ...(to < serverNow() && { until: seoulMinute(to) }) };
  return requestsHref({ ...filter, [by]: wanted, ...span });
}

export const spanOfDay = (day: string): TimeSpan => {
  const from = parseSeoulMinute(`${day}T00:00`) ?? serverNow();
  return { from, to: from + dayMs };
};
