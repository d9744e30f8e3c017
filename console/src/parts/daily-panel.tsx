import { useSearchParams } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { downloadCsv } from "../csv.ts";
import { dailyCsv, type DailyLine, type DailyRow, dailyLines } from "../daily.ts";
import { count, plural } from "../format.ts";
import { addSums } from "../history.ts";
import { useDaily } from "../resources.ts";
import { Segmented } from "./controls.tsx";
import { Icon } from "./icon.tsx";
import { Empty, Panel, SkeletonRows } from "./page.tsx";
import { createGrowingSlice } from "./growing-slice.ts";

const dayChoices = ["7", "30", "90", "365"] as const;
type DayChoice = (typeof dayChoices)[number];

const dayOptions = dayChoices.map((value) => ({ value, label: `${value} d` }));
const lineOptions = [
  { value: "day", label: "By day" },
  { value: "key", label: "By day and key" },
] as const;

interface DailyPanelProps {
  shows: (row: DailyRow) => boolean;
  onClear: () => void;
}

export function DailyPanel(props: DailyPanelProps): JSX.Element {
  const [parameters, setParameters] = useSearchParams<{ days?: string; daily?: string }>();
  const days = (): DayChoice => dayChoices.find((choice) => choice === parameters.days) ?? "30";
  const perKey = (): boolean => parameters.daily === "key";
  const daily = useDaily(() => Number(days()));
  const lines = createMemo(() => (daily.data === undefined ? [] : dailyLines(daily.data.byDay, perKey(), props.shows)));
  const sums = createMemo(() => addSums(lines()));
  const slice = createGrowingSlice(lines);

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
        when={daily.data === undefined || lines().length > 0}
        fallback={
          <Empty title="Nothing matches in these days.">
            <button class="button" type="button" onClick={() => props.onClear()}>
              Clear the filter
            </button>
          </Empty>
        }
      >
        <div class="table-scroll">
          <table class="cards-on-phone daily">
            <caption class="visually-hidden">Usage by day</caption>
            <thead>
              <tr>
                <th scope="col">Day</th>
                <Show when={perKey()}>
                  <th scope="col">Key</th>
                </Show>
                <th scope="col" class="number">
                  Requests
                </th>
                <th scope="col" class="number">
                  Input tokens
                </th>
                <th scope="col" class="number">
                  Output tokens
                </th>
                <th scope="col" class="number">
                  Total tokens
                </th>
              </tr>
            </thead>
            <tbody>
              <Show when={daily.data} fallback={<SkeletonRows columns={5} />}>
                <For each={slice.shown()}>{(line) => <DailyTableRow line={line} />}</For>
              </Show>
            </tbody>
            <tfoot>
              <tr>
                <th scope="row" colspan={perKey() ? 2 : 1}>
                  {plural(lines().length, "row")}
                </th>
                <td class="number" data-label="Requests">
                  {count(sums().requests)}
                </td>
                <td class="number" data-label="Input">
                  {count(sums().input)}
                </td>
                <td class="number" data-label="Output">
                  {count(sums().output)}
                </td>
                <td class="number" data-label="Total">
                  {count(sums().input + sums().output)}
                </td>
              </tr>
            </tfoot>
          </table>
        </div>
        <Show when={slice.rest() > 0}>
          <p class="table-foot" ref={slice.growWhenSeen}>
            <button class="link" type="button" onClick={slice.grow}>
              Show more
            </button>{" "}
            ({count(slice.rest())} left)
          </p>
        </Show>
      </Show>
    </Panel>
  );
}

function DailyTableRow(props: { line: DailyLine }): JSX.Element {
  return (
    <tr>
      <th scope="row" class="date">
        {props.line.date}
      </th>
      <Show when={props.line.key}>{(key) => <td data-label="Key">{key().name}</td>}</Show>
      <td class="number" data-label="Requests">
        {count(props.line.requests)}
      </td>
      <td class="number" data-label="Input">
        {count(props.line.input)}
      </td>
      <td class="number" data-label="Output">
        {count(props.line.output)}
      </td>
      <td class="number" data-label="Total">
        {count(props.line.input + props.line.output)}
      </td>
    </tr>
  );
}
