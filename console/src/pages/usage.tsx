import { type JSX, Show } from "solid-js";
import { compact, count } from "../data/format.ts";
import { type Metric, metrics } from "../data/usage-history.ts";
import { FilterField, Segmented } from "../parts/controls.tsx";
import { DailyPanel, useDailyView } from "../parts/daily-usage-panel.tsx";
import { HistoryPanel } from "../parts/usage-history-panel.tsx";
import { Icon } from "../parts/icon.tsx";
import { Figure, Page } from "../parts/page.tsx";
import { useKeys, useSummary, useTotal } from "../data/queries.ts";
import { type UsageFilters, type UsageView, useUsageFilters, useUsageView } from "../data/use-usage-history.ts";
import { rangeOptions } from "../data/time-range.ts";

const metricOptions = Object.entries(metrics).map(([value, { short }]) => ({ value: value as Metric, label: short }));

/** Today and all time, the history by key, and the days: one filter for all of them. */
export function UsagePage(): JSX.Element {
  const filters = useUsageFilters();
  const usage = useUsageView(filters);
  const summary = useSummary();
  const total = useTotal();
  const daily = useDailyView();
  return (
    <Page title="Usage" queries={[usage.query, summary, total]} slowQueries={[daily.query]}>
      <dl class="figures">
        <SumFigure label="Requests today" today={summary.data?.request_count} all={total.data?.request_count} />
        <SumFigure label="Input tokens today" today={summary.data?.input_tokens} all={total.data?.input_tokens} />
        <SumFigure label="Output tokens today" today={summary.data?.output_tokens} all={total.data?.output_tokens} />
        <SumFigure label="Total tokens today" today={summary.data?.total_tokens} all={total.data?.total_tokens} />
      </dl>
      <Toolbar filters={filters} usage={usage} />
      <HistoryPanel filters={filters} usage={usage} />
      <DailyPanel
        view={daily}
        isFiltered={filters.isFiltered() || filters.hidden().size > 0}
        shows={(row) => filters.shows(row.key_id, row.key_name) && !filters.hidden().has(row.key_id)}
        onClear={filters.clear}
      />
    </Page>
  );
}

function SumFigure(props: { label: string; today: number | undefined; all: number | undefined }): JSX.Element {
  return (
    <Figure
      label={props.label}
      value={props.today === undefined ? undefined : compact(props.today)}
      exact={props.today === undefined ? undefined : count(props.today)}
      note={
        <Show when={props.all !== undefined}>
          <span title={`${count(props.all ?? 0)} by the keys that exist, since each was created`}>
            {compact(props.all ?? 0)} all time
          </span>
        </Show>
      }
    />
  );
}

function Toolbar(props: { filters: UsageFilters; usage: UsageView }): JSX.Element {
  const keys = useKeys();
  const nameOf = (id: number): string =>
    props.usage.query.data?.history.get(id)?.name ?? keys.data?.find((key) => key.id === id)?.name ?? `Key ${id}`;
  return (
    <div class="toolbar">
      <Segmented
        label="Range"
        options={rangeOptions}
        value={props.usage.view().range}
        onChange={(range) => props.usage.setRange(range)}
      />
      <Segmented
        label="What to show"
        options={metricOptions}
        value={props.filters.metric()}
        onChange={(metric) => props.filters.setMetric(metric)}
      />
      <FilterField
        label="Filter keys by name"
        value={props.filters.text()}
        onInput={(text) => props.filters.setText(text)}
      />
      <Show when={props.filters.onlyKey()}>
        {(id) => (
          <button class="chip" type="button" onClick={() => props.filters.showAllKeys()}>
            {nameOf(id())}
            <Icon name="close" />
            <span class="visually-hidden">Show all keys</span>
          </button>
        )}
      </Show>
    </div>
  );
}
