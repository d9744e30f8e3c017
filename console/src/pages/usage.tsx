import { type JSX, Show } from "solid-js";
import { compact, count } from "../data/format.ts";
import { useKeysQuery, useUsageSummaryQuery, useUsageTotalQuery } from "../data/queries.ts";
import { presetOptions } from "../data/time-range.ts";
import { type UsageMetric, usageMetrics } from "../data/usage-history.ts";
import { useDailyUsage } from "../data/use-daily-usage.ts";
import { type UsageFilters, useUsageFilters } from "../data/use-usage-filters.ts";
import { type UsageHistoryState, useUsageHistory } from "../data/use-usage-history.ts";
import { FilterField, SegmentedControl } from "../parts/controls.tsx";
import { DailyUsagePanel } from "../parts/daily-usage-panel.tsx";
import { Figure } from "../parts/figure.tsx";
import { Icon } from "../parts/icon.tsx";
import { Page } from "../parts/page.tsx";
import { UsageHistoryPanel } from "../parts/usage-history-panel.tsx";

const metricOptions = Object.entries(usageMetrics).map(([value, { short }]) => ({
  value: value as UsageMetric,
  label: short,
}));

/** Usage today and in total, the history by key, and the days. The filters apply to history and days. */
export function UsagePage(): JSX.Element {
  const filters = useUsageFilters();
  const history = useUsageHistory(filters);
  const summary = useUsageSummaryQuery();
  const total = useUsageTotalQuery();
  const daily = useDailyUsage();
  return (
    <Page title="Usage" queries={[history.query, summary, total]} slowQueries={[daily.query]}>
      <dl class="figures">
        <TotalFigure label="Requests today" today={summary.data?.request_count} total={total.data?.request_count} />
        <TotalFigure label="Input tokens today" today={summary.data?.input_tokens} total={total.data?.input_tokens} />
        <TotalFigure
          label="Output tokens today"
          today={summary.data?.output_tokens}
          total={total.data?.output_tokens}
        />
        <TotalFigure label="Total tokens today" today={summary.data?.total_tokens} total={total.data?.total_tokens} />
      </dl>
      <Toolbar filters={filters} history={history} />
      <UsageHistoryPanel filters={filters} history={history} />
      <DailyUsagePanel
        state={daily}
        isFiltered={filters.isFiltered() || filters.hiddenIds().size > 0}
        matches={(row) => filters.matches(row.key_id, row.key_name) && !filters.hiddenIds().has(row.key_id)}
        onClear={filters.clear}
      />
    </Page>
  );
}

function TotalFigure(props: { label: string; today: number | undefined; total: number | undefined }): JSX.Element {
  return (
    <Figure
      label={props.label}
      value={props.today === undefined ? undefined : compact(props.today)}
      exact={props.today === undefined ? undefined : count(props.today)}
      note={
        <Show when={props.total !== undefined}>
          <span title={`${count(props.total ?? 0)} by all existing keys since their creation`}>
            {compact(props.total ?? 0)} all time
          </span>
        </Show>
      }
    />
  );
}

function Toolbar(props: { filters: UsageFilters; history: UsageHistoryState }): JSX.Element {
  const keys = useKeysQuery();
  const nameOf = (id: number): string =>
    props.history.history()?.get(id)?.name ?? keys.data?.find((key) => key.id === id)?.name ?? `Key ${id}`;
  return (
    <div class="toolbar">
      <SegmentedControl
        label="Range"
        options={presetOptions}
        value={props.history.timeRange().preset}
        onChange={(preset) => props.history.setPreset(preset)}
      />
      <SegmentedControl
        label="Metric"
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
