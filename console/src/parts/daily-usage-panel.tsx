import { useSearchParams } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { downloadCsv } from "../data/csv.ts";
import { dailyCsv, type DailyLine, type DailyRow, type DailyUsage, dailyLines } from "../data/daily-usage.ts";
import { count, plural } from "../data/format.ts";
import { addSums, type Sums } from "../data/usage-history.ts";
import { useDaily } from "../data/queries.ts";
import { Segmented } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { Empty, Panel, SkeletonRows } from "./page.tsx";
import { createGrowingSlice, MoreRows } from "./infinite-scroll.tsx";
import { SumCells } from "./usage-cells.tsx";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));
const lineOptions = [
  { value: "day", label: "By day" },
  { value: "key", label: "By day and key" },
] as const;

export interface DailyView {
  days: () => DayChoice;
  query: ReturnType<typeof useDaily>;
}

/** The days that the address asks for. */
export function useDailyView(): DailyView {
  const [parameters] = useSearchParams<{ days?: string }>();
  const days = (): DayChoice => dayChoices.find((choice) => choice === parameters.days) ?? "30";
  return { days, query: useDaily(() => Number(days())) };
}

interface DailyPanelProps {
  view: DailyView;
  isFiltered: boolean;
  shows: (row: DailyRow) => boolean;
  onClear: () => void;
}

/** Days back from today, one line each or one for each key. */
export function DailyPanel(props: DailyPanelProps): JSX.Element {
  const [parameters, setParameters] = useSearchParams<{ days?: string; daily?: string }>();
  const days = (): DayChoice => props.view.days();
  const usage = (): DailyUsage | undefined => props.view.query.data?.byDay;
  const perKey = (): boolean => parameters.daily === "key";
  const lines = createMemo(() => dailyLines(usage() ?? new Map(), perKey(), props.shows));

  const exportCsv = (): void => {
    downloadCsv(`usage-daily-${days()}-days.csv`, dailyCsv(lines(), perKey()));
  };

  return (
    <Panel
      title="Daily"
      hint="Days of Seoul"
      actions={
        <>
          <Segmented
            label="Lines"
            options={lineOptions}
            value={perKey() ? "key" : "day"}
            onChange={(lineKind) => setParameters({ daily: lineKind === "key" ? "key" : undefined }, { replace: true })}
          />
          <Segmented
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
          <Show when={props.isFiltered} fallback={<Empty title="No requests in these days." />}>
            <Empty title="Nothing matches in these days.">
              <button class="button" type="button" onClick={() => props.onClear()}>
                Clear the filter
              </button>
            </Empty>
          </Show>
        }
      >
        <DailyTable lines={usage() === undefined ? undefined : lines()} perKey={perKey()} />
      </Show>
    </Panel>
  );
}

/** @param props.lines undefined while they load */
function DailyTable(props: { lines: DailyLine[] | undefined; perKey: boolean }): JSX.Element {
  const slice = createGrowingSlice(() => props.lines ?? []);
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
              <For each={slice.shown()}>{(line) => <DailyTableRow line={line} />}</For>
            </Show>
          </tbody>
          <tfoot>
            <tr>
              <th scope="row" colspan={props.perKey ? 2 : 1}>
                {plural(props.lines?.length ?? 0, "row")}
              </th>
              <SumAndTotalCells sums={addSums(props.lines ?? [])} />
            </tr>
          </tfoot>
        </table>
      </div>
      <MoreRows slice={slice} />
    </>
  );
}

function DailyTableRow(props: { line: DailyLine }): JSX.Element {
  return (
    <tr>
      <th scope="row" class="date">
        {props.line.date}
      </th>
      <Show when={props.line.key}>{(key) => <td data-label="Key">{key().name}</td>}</Show>
      <SumAndTotalCells sums={props.line} />
    </tr>
  );
}

function SumAndTotalCells(props: { sums: Sums }): JSX.Element {
  return (
    <>
      <SumCells sums={props.sums} />
      <td class="number" data-label="Total">
        {count(props.sums.input + props.sums.output)}
      </td>
    </>
  );
}
