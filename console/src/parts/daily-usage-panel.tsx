import { createMemo, For, type JSX, Show } from "solid-js";
import { downloadCsv } from "../data/csv.ts";
import {
  type DailyUsage,
  dailyUsageCsv,
  type DailyUsageLine,
  dailyUsageLines,
  type DailyUsageRow,
} from "../data/daily-usage.ts";
import { count, plural } from "../data/format.ts";
import { addSums, type UsageSums } from "../data/usage-history.ts";
import { type DailyUsageState, dayOptions } from "../data/use-daily-usage.ts";
import { SegmentedControl } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { EmptyState, Panel } from "./panel.tsx";
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
  const usage = (): DailyUsage | undefined => props.state.query.data?.byDay;
  const lines = createMemo(() => dailyUsageLines(usage() ?? new Map(), props.state.perKey(), props.matches));
  return (
    <Panel
      title="Daily usage"
      hint="Days in Seoul time (UTC+9)"
      actions={<PanelActions state={props.state} lines={lines()} />}
    >
      <Show
        when={usage() === undefined || lines().length > 0}
        fallback={
          <Show when={props.isFiltered} fallback={<EmptyState title="No requests on these days" />}>
            <EmptyState title="No matching usage on these days">
              <button class="button" type="button" onClick={() => props.onClear()}>
                Clear filter
              </button>
            </EmptyState>
          </Show>
        }
      >
        <DailyUsageTable lines={usage() === undefined ? undefined : lines()} perKey={props.state.perKey()} />
      </Show>
    </Panel>
  );
}

function PanelActions(props: { state: DailyUsageState; lines: readonly DailyUsageLine[] }): JSX.Element {
  const exportCsv = (): void => {
    downloadCsv(`usage-daily-${props.state.days()}-days.csv`, dailyUsageCsv(props.lines, props.state.perKey()));
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
      <button class="button" type="button" disabled={props.lines.length === 0} onClick={exportCsv}>
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
            <tr>
              <th scope="row" colspan={props.perKey ? 2 : 1}>
                {plural(props.lines?.length ?? 0, "row")}
              </th>
              <UsageAndTotalCells sums={addSums(props.lines ?? [])} />
            </tr>
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
