import { createMemo, For, type JSX, Match, Show, Switch } from "solid-js";
import { downloadCsv } from "../data/csv.ts";
import {
  type DailyUsage,
  dailyUsageCsv,
  type DailyUsageLine,
  dailyUsageLines,
  type DailyUsageRow,
} from "../data/daily-usage.ts";
import { count, plural } from "../data/format.ts";
import { zonedClockLabel } from "../data/time-labels.ts";
import { addSums, type UsageSums } from "../data/usage-history.ts";
import { type DailyUsageState, dayOptions } from "../data/use-daily-usage.ts";
import { SegmentedControl } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { EmptyState, NotLoaded, Panel } from "./panel.tsx";
import { SkeletonRows } from "./skeleton.tsx";
import { UsageCells } from "./usage-cells.tsx";

const groupOptions = [
  { value: "day", label: "By day" },
  { value: "key", label: "By day and key" },
] as const;

interface DailyUsagePanelProps {
  state: DailyUsageState;
  isFiltered: boolean;
  matches: (row: DailyUsageRow) => boolean;
  onClear: () => void;
}

/** The last days, one line each or one per key. */
export function DailyUsagePanel(props: DailyUsagePanelProps): JSX.Element {
  const usage = (): DailyUsage | undefined => props.state.shown();
  const lines = createMemo(() => dailyUsageLines(usage() ?? new Map(), props.state.perKey(), props.matches));
  return (
    <Panel
      title="Daily usage"
      hint={<DaysHint state={props.state} />}
      actions={<PanelActions state={props.state} lines={lines()} />}
    >
      <Switch
        fallback={<DailyUsageTable lines={usage() === undefined ? undefined : lines()} perKey={props.state.perKey()} />}
      >
        <Match when={usage() === undefined && props.state.query.isError}>
          <NotLoaded error={props.state.query.error} />
        </Match>
        <Match when={usage() !== undefined && lines().length === 0}>
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
      <Switch>
        <Match when={props.state.shown() === undefined || props.state.isCurrent()}>{null}</Match>
        <Match when={props.state.isLoading()}>
          {" "}
          · {props.state.shownDays()} days, loading {props.state.days()}…
        </Match>
        <Match when={props.state.query.isError}>
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

function PanelActions(props: { state: DailyUsageState; lines: readonly DailyUsageLine[] }): JSX.Element {
  const exportCsv = (): void => {
    downloadCsv(`usage-daily-${props.state.shownDays()}-days.csv`, dailyUsageCsv(props.lines, props.state.perKey()));
  };
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
        value={props.state.days()}
        onChange={(days) => props.state.setDays(days)}
      />
      <button
        class="button"
        type="button"
        disabled={!props.state.isCurrent() || props.lines.length === 0}
        onClick={exportCsv}
      >
        <Icon name="download" />
        CSV
      </button>
    </>
  );
}

/** @param props.lines undefined while they load */
function DailyUsageTable(props: { lines: DailyUsageLine[] | undefined; perKey: boolean }): JSX.Element {
  const scroll = createInfiniteScroll(() => props.lines ?? []);
  return (
    <>
      <div class="table-scroll">
        <table class="cards-on-phone daily">
          <caption class="visually-hidden">Usage by day</caption>
          <thead>
            <tr>
              <th scope="col">Day</th>
              <Show when={props.perKey}>
                <th scope="col">Key</th>
              </Show>
              <For each={["Requests", "Input tokens", "Output tokens", "Total tokens"]}>
                {(label) => (
                  <th scope="col" class="number">
                    {label}
                  </th>
                )}
              </For>
            </tr>
          </thead>
          <tbody>
            <Show when={props.lines} fallback={<SkeletonRows columns={5} />}>
              <For each={scroll.shown()}>{(line) => <DailyUsageTableRow line={line} />}</For>
            </Show>
          </tbody>
          <tfoot>
            <Show when={props.lines} fallback={<SkeletonRows columns={5} rows={1} />}>
              {(lines) => (
                <tr>
                  <th scope="row" colspan={props.perKey ? 2 : 1}>
                    {plural(lines().length, "row")}
                  </th>
                  <UsageAndTotalCells sums={addSums(lines())} />
                </tr>
              )}
            </Show>
          </tfoot>
        </table>
      </div>
      <MoreRows scroll={scroll} />
    </>
  );
}

function DailyUsageTableRow(props: { line: DailyUsageLine }): JSX.Element {
  return (
    <tr>
      <th scope="row">{props.line.date}</th>
      <Show when={props.line.key}>{(key) => <td data-label="Key">{key().name}</td>}</Show>
      <UsageAndTotalCells sums={props.line} />
    </tr>
  );
}

function UsageAndTotalCells(props: { sums: UsageSums }): JSX.Element {
  return (
    <>
      <UsageCells sums={props.sums} />
      <td class="number" data-label="Total">
        {count(props.sums.input + props.sums.output)}
      </td>
    </>
  );
}
