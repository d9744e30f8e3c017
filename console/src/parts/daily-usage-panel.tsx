import { useSearchParams } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { downloadCsv } from "../data/csv.ts";
import {
  dailyUsageCsv,
  type DailyUsageLine,
  type DailyUsageRow,
  type DailyUsage,
  dailyUsageLines,
} from "../data/daily-usage.ts";
import { count, plural } from "../data/format.ts";
import { addSums, type UsageSums } from "../data/usage-history.ts";
import { useDailyUsageQuery } from "../data/queries.ts";
import { SegmentedControl } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { EmptyState, Panel, SkeletonRows } from "./page.tsx";
import { createInfiniteScroll, MoreRows } from "./infinite-scroll.tsx";
import { UsageCells } from "./usage-cells.tsx";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));
const groupOptions = [
  { value: "day", label: "By day" },
  { value: "key", label: "By day and key" },
] as const;

export interface DailyUsageState {
  days: () => DayChoice;
  query: ReturnType<typeof useDailyUsageQuery>;
}

/** The days that the address asks for. */
export function useDailyUsage(): DailyUsageState {
  const [parameters] = useSearchParams<{ days?: string }>();
  const days = (): DayChoice => dayChoices.find((choice) => choice === parameters.days) ?? "30";
  return { days, query: useDailyUsageQuery(() => Number(days())) };
}

interface DailyUsagePanelProps {
  state: DailyUsageState;
  isFiltered: boolean;
  matches: (row: DailyUsageRow) => boolean;
  onClear: () => void;
}

/** Days back from today, one line each or one for each key. */
export function DailyUsagePanel(props: DailyUsagePanelProps): JSX.Element {
  const [parameters, setParameters] = useSearchParams<{ days?: string; daily?: string }>();
  const days = (): DayChoice => props.state.days();
  const usage = (): DailyUsage | undefined => props.state.query.data?.byDay;
  const perKey = (): boolean => parameters.daily === "key";
  const lines = createMemo(() => dailyUsageLines(usage() ?? new Map(), perKey(), props.matches));

  const exportCsv = (): void => {
    downloadCsv(`usage-daily-${days()}-days.csv`, dailyUsageCsv(lines(), perKey()));
  };

  return (
    <Panel
      title="Daily"
      hint="Days of Seoul"
      actions={
        <>
          <SegmentedControl
            label="Lines"
            options={groupOptions}
            value={perKey() ? "key" : "day"}
            onChange={(lineKind) => setParameters({ daily: lineKind === "key" ? "key" : undefined }, { replace: true })}
          />
          <SegmentedControl
            label="Days"
            options={dayOptions}
            value={days()}
            onChange={(choice) => setParameters({ days: choice === "30" ? undefined : choice }, { replace: true })}
          />
          <button class="button" type="button" disabled={lines().length === 0} onClick={exportCsv}>
            <Icon name="download" />
            CSV
          </button>
        </>
      }
    >
      <Show
        when={usage() === undefined || lines().length > 0}
        fallback={
          <Show when={props.isFiltered} fallback={<EmptyState title="No requests in these days." />}>
            <EmptyState title="Nothing matches in these days.">
              <button class="button" type="button" onClick={() => props.onClear()}>
                Clear the filter
              </button>
            </EmptyState>
          </Show>
        }
      >
        <DailyUsageTable lines={usage() === undefined ? undefined : lines()} perKey={perKey()} />
      </Show>
    </Panel>
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
      <th scope="row" class="date">
        {props.line.date}
      </th>
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
