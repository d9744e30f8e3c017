import { Index, type JSX, Match, Show, Switch } from "solid-js";
import { plural } from "../lib/format.ts";
import type { Cost } from "../lib/money.ts";
import { zonedClockLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { Icon } from "../ui/icon.tsx";
import { createInfiniteScroll, MoreRows } from "../ui/infinite-scroll.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { SkeletonRows } from "../ui/skeleton.tsx";
import { CostCell, NumberCell, NumberHeads } from "../ui/number-columns.tsx";
import { DailyChart } from "./daily-chart.tsx";
import type { DailyUsageLine } from "./daily-usage.ts";
import { UsageCells } from "./usage-cells.tsx";
import type { UsageMetric, UsageSums } from "./usage-sums.ts";
import { type DailyUsageState, dayOptions } from "./use-daily-usage.ts";

const groupOptions = [
  { value: "day", label: "By day" },
  { value: "key", label: "By day and key" },
] as const;

interface DailyUsagePanelProps {
  state: DailyUsageState;
  isFiltered: boolean;
  metric: UsageMetric;
  /** Shows some days in the chart of the page. */
  onZoom: (span: TimeSpan) => void;
  onClear: () => void;
}

/** The last days as bars, and as a table with one line each or one per key. */
export function DailyUsagePanel(props: DailyUsagePanelProps): JSX.Element {
  const isEmpty = (): boolean => props.state.days()?.length === 0;
  return (
    <Panel title="Daily usage" hint={<DaysHint state={props.state} />} actions={<PanelActions state={props.state} />}>
      <Switch
        fallback={
          <>
            <DailyChart
              days={props.state.days()}
              dayCount={props.state.shownDays() - 1}
              today={props.state.today()}
              metric={props.metric}
              loading={props.state.isLoading()}
              onZoom={(span) => props.onZoom(span)}
              onPlotWidth={(widthPx) => props.state.setPlotWidth(widthPx)}
            />
            <DailyUsageTable state={props.state} />
          </>
        }
      >
        <Match when={props.state.days() === undefined && props.state.query.isError}>
          <NotLoaded query={props.state.query} />
        </Match>
        <Match when={isEmpty()}>
          <NoDays isFiltered={props.isFiltered} onClear={props.onClear} />
        </Match>
      </Switch>
    </Panel>
  );
}

function DaysHint(props: { state: DailyUsageState }): JSX.Element {
  return (
    <>
      Days in Seoul time (KST, UTC+9)
      {props.state.daysPerBar() > 1 ? ` · each bar sums ${props.state.daysPerBar()} days` : ""}
      <Switch>
        <Match when={props.state.days() === undefined || props.state.isCurrent()}>{null}</Match>
        <Match when={props.state.isLoading()}>
          {" "}
          · {props.state.shownDays()} days, loading {props.state.chosenDays()}…
        </Match>
        <Match when={props.state.query.isError || props.state.pageQuery.isError}>
          {" "}
          · {props.state.shownDays()} days, loaded {zonedClockLabel(props.state.fetchedAt() ?? 0)}
        </Match>
      </Switch>
    </>
  );
}

const NoDays = (props: { isFiltered: boolean; onClear: () => void }): JSX.Element => (
  <Show when={props.isFiltered} fallback={<EmptyState title="No requests on these days" />}>
    <EmptyState title="No matching usage on these days">
      <button class="button" type="button" onClick={() => props.onClear()}>
        Clear filter
      </button>
    </EmptyState>
  </Show>
);

function PanelActions(props: { state: DailyUsageState }): JSX.Element {
  return (
    <>
      <SegmentedControl
        label="Group by"
        options={groupOptions}
        value={props.state.perKey() ? "key" : "day"}
        onChange={(group) => props.state.setPerKey(group === "key")}
      />
      <SegmentedControl
        label="Days"
        options={dayOptions}
        value={props.state.chosenDays()}
        onChange={(days) => props.state.setDays(days)}
      />
      <button
        class="button"
        type="button"
        disabled={!props.state.isCurrent() || props.state.days()?.length === 0 || props.state.isExporting()}
        onClick={() => props.state.exportCsv()}
      >
        <Icon name="download" />
        CSV
      </button>
    </>
  );
}

function DailyUsageTable(props: { state: DailyUsageState }): JSX.Element {
  const scroll = createInfiniteScroll(() => props.state.lines() ?? [], {
    choice: () => props.state.choice(),
    paged: { hasMore: () => props.state.hasMore(), loadMore: () => props.state.loadMore() },
  });
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone sums daily">
          <caption class="visually-hidden">Usage by day</caption>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <Show when={props.state.perKey()}>
                <th scope="col">Key</th>
              </Show>
              <NumberHeads
                labels={[
                  "Requests",
                  "Input tokens",
                  "Output tokens",
                  "Total tokens",
                  ...(props.state.currency() === undefined ? [] : ["Cost"]),
                ]}
              />
            </tr>
          </thead>
          <tbody>
            <Show when={props.state.lines()} fallback={<SkeletonRows columns={5} />}>
              {/* Not by reference: each refresh has new lines, most of them with the same content. */}
              <Index each={scroll.shown()}>{(line) => <DailyUsageTableRow line={line()} state={props.state} />}</Index>
            </Show>
          </tbody>
          <tfoot>
            <Show when={props.state.days()} fallback={<SkeletonRows columns={5} rows={1} />}>
              <tr>
                <th scope="row" colspan={props.state.perKey() ? 2 : 1}>
                  {props.state.hasMore() ? "All rows" : plural(props.state.lines()?.length ?? 0, "row")}
                </th>
                <UsageAndTotalCells
                  sums={props.state.sums()}
                  cost={props.state.cost()}
                  currency={props.state.currency()}
                />
              </tr>
            </Show>
          </tfoot>
        </table>
      </div>
      <MoreRows scroll={scroll} />
    </>
  );
}

function DailyUsageTableRow(props: { line: DailyUsageLine; state: DailyUsageState }): JSX.Element {
  return (
    <tr>
      <th scope="row">{props.line.date}</th>
      <Show when={props.line.key}>{(key) => <td data-label="Key">{key().name}</td>}</Show>
      <UsageAndTotalCells sums={props.line} cost={props.line.cost} currency={props.state.currency()} />
    </tr>
  );
}

function UsageAndTotalCells(props: { sums: UsageSums; cost: Cost; currency: string | undefined }): JSX.Element {
  return (
    <>
      <UsageCells sums={props.sums} />
      <NumberCell label="Total" value={props.sums.input + props.sums.output} />
      <CostCell cost={props.cost} currency={props.currency} />
    </>
  );
}
