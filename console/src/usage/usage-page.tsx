// Usage by key, by day and by model, and what it costs.
//
// It keeps true: title, figures, legend and CSV of a chart are made from the data that it draws (`usage-buckets.ts`),
// so that none belongs to other data. Filters and range are part of the URL. Tokens without a price make a cost a lower
// bound, and never a guess.

import { type JSX, Show } from "solid-js";
import { compact, count } from "../lib/format.ts";
import { sameRequest } from "../lib/series.ts";
import { type Key, useKeysQuery } from "../queries.ts";
import { FilterField, SegmentedControl } from "../ui/controls.tsx";
import { Figure } from "../ui/figure.tsx";
import { Icon } from "../ui/icon.tsx";
import { lazyPanels } from "../ui/lazy.tsx";
import { Page, type PageSource } from "../ui/page.tsx";
import { useCostsQuery } from "./cost-queries.ts";
import { DailyUsagePanel } from "./daily-usage-panel.tsx";
import { KeyUsagePanel } from "./key-usage-panel.tsx";
import { useUsageTotalQuery } from "./queries.ts";
import { RangeControl } from "./range-control.tsx";
import { everyKey, type KeySelection, matchesSelection } from "./usage-buckets.ts";
import { addSums, sumsOf, type UsageMetric, usageMetrics, type UsageSums } from "./usage-sums.ts";
import { useDailyUsage } from "./use-daily-usage.ts";
import { type KeyUsageState, useKeyUsage } from "./use-key-usage.ts";
import { type UsageFilters, useUsageFilters } from "./use-usage-filters.ts";

const UsagePanels = lazyPanels("Models and cost", async () => (await import("./usage-panels.tsx")).UsagePanels);

const metricOptions = Object.entries(usageMetrics).map(([value, { short }]) => ({
  value: value as UsageMetric,
  label: short,
}));

/** Usage today and in total, the usage by key, and the days. The filters apply to all of them. */
export function UsagePage(): JSX.Element {
  const filters = useUsageFilters();
  const usage = useKeyUsage(filters);
  const figures = useUsageFigures(filters);
  const daily = useDailyUsage(filters);
  const sources = (): PageSource[] => [
    { name: usageMetrics[filters.metric()].label, query: usage.query, fetchedAt: usage.fetchedAt() },
    ...(filters.compares() ? [{ name: "The period before", query: usage.before.query, slow: true }] : []),
    { name: "Today’s figures", query: figures.query },
    { name: "Daily usage", query: daily.query, fetchedAt: daily.fetchedAt(), slow: true },
    ...(daily.perKey() ? [{ name: "Daily usage by key", query: daily.pageQuery, slow: true }] : []),
  ];
  return (
    <Page title="Usage" help="counting" sources={sources()}>
      <Figures figures={figures} />
      <Toolbar filters={filters} usage={usage} />
      <div class="side-by-side">
        <KeyUsagePanel filters={filters} usage={usage} />
        <DailyUsagePanel
          state={daily}
          isFiltered={figures.isFiltered()}
          metric={filters.metric()}
          onZoom={(span) => usage.setZoom(span)}
          onClear={filters.clear}
        />
      </div>
      <UsagePanels />
    </Page>
  );
}

function Figures(props: { figures: UsageFigures }): JSX.Element {
  return (
    <dl class="figures">
      <TotalFigure figures={props.figures} label="Requests today (KST)" value={(sums) => sums.requests} />
      <TotalFigure figures={props.figures} label="Input tokens today (KST)" value={(sums) => sums.input} />
      <TotalFigure figures={props.figures} label="Output tokens today (KST)" value={(sums) => sums.output} />
      <TotalFigure
        figures={props.figures}
        label="Total tokens today (KST)"
        value={(sums) => sums.input + sums.output}
      />
    </dl>
  );
}

function TotalFigure(props: { figures: UsageFigures; label: string; value: (sums: UsageSums) => number }): JSX.Element {
  const valueOf = (sums: UsageSums | undefined): number | undefined => sums && props.value(sums);
  const today = (): number | undefined => valueOf(props.figures.today());
  const allTime = (): number | undefined => valueOf(props.figures.allTime());
  const whose = (): string => (props.figures.isFiltered() ? "the shown keys" : "all existing keys");
  return (
    <Figure
      label={props.label}
      value={today() === undefined ? undefined : compact(today() ?? 0)}
      exact={today() === undefined ? undefined : count(today() ?? 0)}
      failed={props.figures.failed()}
      note={
        <Show when={allTime() !== undefined}>
          <span title={`${count(allTime() ?? 0)} by ${whose()} since their creation`}>
            {compact(allTime() ?? 0)} all time{props.figures.isFiltered() ? ", shown keys" : ""}
          </span>
        </Show>
      }
    />
  );
}

function Toolbar(props: { filters: UsageFilters; usage: KeyUsageState }): JSX.Element {
  const listedName = (): string | undefined => props.usage.data()?.keys.get(Number(props.filters.key()))?.name;
  // A deleted key has a name only in the chart, an unused one only in the list of keys.
  const keys = useKeysQuery(
    () => props.filters.key() !== undefined && props.usage.data() !== undefined && listedName() === undefined,
  );
  const labelOf = (id: string): string => {
    const name = listedName() ?? keys.data?.find((key) => String(key.id) === id)?.name;
    if (name !== undefined) return name;
    const areLoaded = props.usage.data() !== undefined && keys.data !== undefined;
    return areLoaded ? `Key ${id} matches nothing` : `Key ${id}`;
  };
  return (
    <div class="toolbar">
      <RangeControl usage={props.usage} />
      <SegmentedControl
        label="Metric"
        options={metricOptions}
        value={props.filters.metric()}
        onChange={(metric) => props.filters.setMetric(metric)}
      />
      <button
        class="button"
        type="button"
        title="Compare with the period before"
        aria-label="Compare with the period before"
        aria-pressed={props.filters.compares()}
        onClick={() => props.filters.setCompares(!props.filters.compares())}
      >
        Compare
      </button>
      <FilterField
        label="Filter keys by name"
        value={props.filters.search()}
        onInput={(text) => props.filters.setSearch(text)}
      />
      <Show when={props.filters.key()}>
        {(id) => (
          <button class="chip" type="button" onClick={() => props.filters.showAllKeys()}>
            <span class="chip-text">{labelOf(id())}</span>
            <Icon name="close" />
            <span class="visually-hidden">Show all keys</span>
          </button>
        )}
      </Show>
    </div>
  );
}

/** The sums over the keys that the filters leave. */
interface UsageFigures {
  /** Undefined while they load. */
  today: () => UsageSums | undefined;
  /** Counts only the keys that still exist; undefined while they load. */
  allTime: () => UsageSums | undefined;
  failed: () => boolean;
  /** Whether they are of some keys only. */
  isFiltered: () => boolean;
  query: ReturnType<typeof useCostsQuery>;
}

function useUsageFigures(filters: UsageFilters): UsageFigures {
  const query = useCostsQuery(() => ({ days: 1, by: "day", selection: filters.selection() }), { everyMs: 15_000 });
  const selected = (): KeySelection => query.data?.request.selection ?? filters.selection();
  const isFiltered = (): boolean => !sameRequest(selected(), everyKey);
  const total = useUsageTotalQuery(() => !isFiltered());
  const keys = useKeysQuery(isFiltered);
  const totalOfKeys = (list: readonly Key[]): UsageSums =>
    addSums(list.filter(({ id, name }) => matchesSelection(selected(), id, name)).map(totalOfKey));
  return {
    today: () => query.data && addSums(query.data.rows.map(sumsOf)),
    allTime: () => (isFiltered() ? keys.data && totalOfKeys(keys.data) : total.data && sumsOf(total.data)),
    failed: () => query.isError,
    isFiltered,
    query,
  };
}

const totalOfKey = (key: Key): UsageSums => ({
  requests: key.total_request_count,
  input: key.total_input_tokens,
  output: key.total_output_tokens,
});
