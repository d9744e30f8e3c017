import { type JSX, Show } from "solid-js";
import { compact, count } from "../data/format.ts";
import { type UsageMetric, usageMetrics } from "../data/usage-history.ts";
import { FilterField, SegmentedControl } from "../parts/controls.tsx";
import { DailyUsagePanel, useDailyUsage } from "../parts/daily-usage-panel.tsx";
import { UsageHistoryPanel } from "../parts/usage-history-panel.tsx";
import { Icon } from "../parts/icon.tsx";
import { Figure, Page } from "../parts/page.tsx";
import { useKeysQuery, useUsageSummaryQuery, useUsageTotalQuery } from "../data/queries.ts";
import {
  type UsageFilters,
  type UsageHistoryState,
  useUsageFilters,
  useUsageHistory,
} from "../data/use-usage-history.ts";
import { presetOptions } from "../data/time-range.ts";

const metricOptions = Object.entries(usageMetrics).map(([value, { short }]) => ({
  value: value as UsageMetric,
  label: short,
}));

/** Today and all time, the history by key, and the days: one filter for all of them. */
export function UsagePage(): JSX.Element {
  const filters = useUsageFilters();
  const usage = useUsageHistory(filters);
  const summary = useUsageSummaryQuery();
  const total = useUsageTotalQuery();
  const daily = useDailyUsage();
  return (
    <Page title="Usage" queries={[usage.query, summary, total]} slowQueries={[daily.query]}>
      <dl class="figures">
        <SumFigure label="Requests today" today={summary.data?.request_count} all={total.data?.request_count} />
        <SumFigure label="Input tokens today" today={summary.data?.input_tokens} all={total.data?.input_tokens} />
        <SumFigure label="Output tokens today" today={summary.data?.output_tokens} all={total.data?.output_tokens} />
        <SumFigure label="Total tokens today" today={summary.data?.total_tokens} all={total.data?.total_tokens} />
      </dl>
      <Toolbar filters={filters} usage={usage} />
      <UsageHistoryPanel filters={filters} history={usage} />
      <DailyUsagePanel
        state={daily}
        isFiltered={filters.isFiltered() || filters.hiddenIds().size > 0}
        matches={(row) => filters.matches(row.key_id, row.key_name) && !filters.hiddenIds().has(row.key_id)}
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

function Toolbar(props: { filters: UsageFilters; usage: UsageHistoryState }): JSX.Element {
  const keys = useKeysQuery();
  const nameOf = (id: number): string =>
    props.usage.query.data?.history.get(id)?.name ?? keys.data?.find((key) => key.id === id)?.name ?? `Key ${id}`;
  return (
    <div class="toolbar">
      <SegmentedControl
        label="Range"
        options={presetOptions}
        value={props.usage.timeRange().preset}
        onChange={(range) => props.usage.setPreset(range)}
      />
      <SegmentedControl
        label="What to show"
        options={metricOptions}
        value={props.filters.metric()}
        onChange={(metric) => props.filters.setMetric(metric)}
      />
      <FilterField
        label="Filter keys by name"
        value={props.filters.search()}
        onInput={(text) => props.filters.setSearch(text)}
      />
      <Show when={props.filters.keyId()}>
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
