// What was used, by whom, and what it cost: one bar, and below it figures, a chart and a table that obey it.
//
// It keeps true: title and legend of a chart are made from the data that it draws (`usage-buckets.ts`), and figures,
// table and CSV from one report (`report.ts`), so that none belongs to other data. Range and filters are part of the
// URL. Tokens without a price make a cost a lower bound, and never a guess.
//
// Removed: panels of days, of models and of clients, with ranges and CSVs of their own.

import { A } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { compact, count, percentChange, shareOf } from "../lib/format.ts";
import { costLabel, costTitle } from "../lib/money.ts";
import { maxDays } from "../lib/time-range.ts";
import { useTimeRange } from "../lib/use-time-range.ts";
import { RangeHint, ResetZoom } from "../ui/chart-range.tsx";
import { SegmentedControl } from "../ui/controls.tsx";
import { Figure } from "../ui/figure.tsx";
import { Icon } from "../ui/icon.tsx";
import { Page, type PageSource } from "../ui/page.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { type RankedKey, rankKeys } from "./key-ranking.ts";
import { RangeControl } from "./range-control.tsx";
import { changeOf, type Group, groups, isFilterName, noUsage, type Sums } from "./report.ts";
import { UsageChart } from "./usage-chart.tsx";
import { type FilterName, filterNames } from "./usage-filters.ts";
import { type UsageMetric, usageMetrics } from "./usage-sums.ts";
import { spanOfDay, UsageTable } from "./usage-table.tsx";
import { usageViewOptions, usageViews } from "./usage-view.ts";
import { currencyOf, type ReportState, useReport } from "./use-report.ts";
import { type UsageFilters, useUsageFilters } from "./use-usage-filters.ts";
import { type UsageSelection, useUsageSeries } from "./use-usage-series.ts";

const metricOptions = Object.entries(usageMetrics).map(([value, { short }]) => ({
  value: value as UsageMetric,
  label: short,
}));

const chartGroups = ["key", "team", "user", "model"] as const;

export function UsagePage(): JSX.Element {
  const filters = useUsageFilters();
  const range = useTimeRange("24h");
  const report = useReport(() => ({ range: range.chosen(), filter: filters.filter(), by: filters.by() }));
  const selection = createMemo((): UsageSelection => {
    const by = chartGroups.find((group) => group === report.request().by);
    const { topCount } = usageViews[filters.view()];
    const top = by === undefined ? 0 : topCount;
    return { filter: filters.filter(), by: by ?? "key", metric: filters.metric(), top, list: top };
  });
  const usage = useUsageSeries(range.chosen, selection, maxDays, report.isReady);
  const ranked = createMemo<RankedKey[]>((before) => rankKeys(usage.data(), before), []);
  const colours = createMemo(() => new Map(ranked().map(({ key, colour }) => [String(key.id), colour])));
  const metric = (): UsageMetric => usage.data()?.metric ?? filters.metric();
  const sources = (): PageSource[] => [
    { name: usageMetrics[filters.metric()].label, query: usage.query, fetchedAt: usage.fetchedAt() },
    { name: "Usage and cost", query: report.query, slow: true },
  ];
  const open = (by: Group, value: string): void => {
    if (by === "day") range.setZoom(spanOfDay(value));
    else if (by === "key_model") filters.set("key", value);
    else if (isFilterName(by)) filters.set(by, value);
  };
  return (
    <Page title="Usage" help="counting" sources={sources()}>
      <div class="toolbar">
        <RangeControl range={range} span={usage.span()} />
        <Filters filters={filters} report={report} />
      </div>
      <Figures state={report} />
      <Panel
        title={usageMetrics[metric()].label}
        hint={<RangeHint shown={{ ...usage, chosen: range.chosen }} />}
        actions={
          <>
            <SegmentedControl
              label="Metric"
              options={metricOptions}
              value={filters.metric()}
              onChange={(chosen) => filters.setMetric(chosen)}
            />
            <Show when={selection().top > 0}>
              <SegmentedControl
                label="Chart"
                options={usageViewOptions}
                value={filters.view()}
                onChange={(view) => filters.setView(view)}
              />
            </Show>
            <ResetZoom state={range} />
          </>
        }
      >
        <UsageChart
          buckets={usage.data()}
          ranked={ranked()}
          metric={metric()}
          view={selection().top > 0 ? filters.view() : "stacked"}
          span={usage.span()}
          bucketMinutes={usage.bucketMinutes()}
          zoomed={range.chosen().zoom !== undefined}
          loading={usage.isLoading()}
          failure={<NotLoaded query={usage.query} />}
          onPlotWidth={usage.setPlotWidth}
          onZoom={(zoom) => range.setZoom(zoom)}
          empty={<EmptyState title={`No ${usageMetrics[metric()].label.toLowerCase()} in this period`} />}
        />
      </Panel>
      <UsageTable
        state={report}
        isReported
        colourOf={(id) => (report.report()?.request.by === usage.data()?.request.by ? (colours().get(id) ?? 0) : 0)}
        onOpen={open}
        onGroup={filters.setBy}
      />
    </Page>
  );
}

/** What is shown of the usage; each can be removed, and rows of the table add them. */
function Filters(props: { filters: UsageFilters; report: ReportState }): JSX.Element {
  const valueOf = (name: FilterName): string => props.filters.filter()[name] ?? "";
  const labelOf = (name: FilterName): string => {
    const names = props.report.report()?.names;
    const known = name === "key" || name === "team" || name === "user" ? names?.[name] : valueOf(name);
    return `${groups[name]}: ${known ?? (valueOf(name) === "0" ? "none" : valueOf(name))}`;
  };
  return (
    <>
      <For each={filterNames.filter((name) => props.filters.filter()[name] !== undefined)}>
        {(name) => (
          <button class="chip" type="button" onClick={() => props.filters.set(name, undefined)}>
            <span class="chip-text">{labelOf(name)}</span>
            <Icon name="close" />
            <span class="visually-hidden">Clear this filter</span>
          </button>
        )}
      </For>
      <Show when={props.filters.filter().key}>
        {(id) => (
          <A class="button" href={`/keys/${id()}`}>
            Open key
          </A>
        )}
      </Show>
    </>
  );
}

type Counted = "request_count" | "prompt_tokens" | "output_tokens";

/** The sums of what the bar selects, and how they compare with the period before. */
function Figures(props: { state: ReportState }): JSX.Element {
  const report = () => props.state.report();
  const before = (): Sums | undefined => report()?.before?.total;
  const counted = (field: Counted) => {
    const total = report()?.total[field];
    return {
      failed: props.state.query.isError,
      value: total === undefined ? undefined : compact(total),
      exact: total === undefined ? undefined : count(total),
    };
  };
  const change = (field: Counted): string | undefined =>
    percentChange(report()?.total[field] ?? 0, before()?.[field] ?? 0);
  return (
    <dl class="figures" classList={{ old: props.state.query.isPlaceholderData }}>
      <Figure label="Requests" {...counted("request_count")} note={<Change text={change("request_count")} />} />
      <Figure
        label="Input tokens"
        {...counted("prompt_tokens")}
        note={
          <>
            <Show when={report()?.total.from_cache_tokens} fallback={<Change text={change("prompt_tokens")} />}>
              {(cached) => (
                <span title={count(cached())}>
                  <b>{change("prompt_tokens")}</b>
                  {change("prompt_tokens") === undefined ? "" : " · "}
                  {shareOf(cached(), report()?.total.prompt_tokens ?? 0)} from cache
                </span>
              )}
            </Show>
          </>
        }
      />
      <Figure label="Output tokens" {...counted("output_tokens")} note={<Change text={change("output_tokens")} />} />
      <Show when={currencyOf(report())}>
        {(currency) => (
          <Figure
            label="Cost"
            value={costLabel(report()?.total ?? noUsage, currency())}
            exact={costTitle(report()?.total ?? noUsage)}
            note={<Change text={changeOf(report()?.total ?? noUsage, before())} />}
          />
        )}
      </Show>
    </dl>
  );
}

/** The table says what the period before is. */
const Change = (props: { text: string | undefined }): JSX.Element => (
  <Show when={props.text}>
    {(text) => (
      <span>
        <b>{text()}</b> vs. before
      </span>
    )}
  </Show>
);
