import { type JSX, Match, Show, Switch } from "solid-js";
import { UsageChart } from "./usage-chart.tsx";
import { bucketName, compact, count, percentChange } from "../lib/format.ts";
import { spanLabel, zonedClockLabel } from "../lib/time-labels.ts";
import { presetLabel, type TimeRange, type TimeSpan } from "../lib/time-range.ts";
import { metricOf, type UsageMetric, usageMetrics } from "./usage-sums.ts";
import { usageViewOptions } from "./usage-view.ts";
import type { UsageFilters } from "./use-usage-filters.ts";
import type { TimeRangeState } from "../lib/use-time-range.ts";
import type { UsageBuckets } from "./use-usage-buckets.ts";
import type { UsageHistoryState } from "./use-key-usage.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { Icon } from "../ui/icon.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { ResetZoom } from "../ui/preset-control.tsx";
import { Skeleton } from "../ui/skeleton.tsx";
import { UsageLegend } from "./usage-legend.tsx";

interface UsageHistoryPanelProps {
  filters: UsageFilters;
  history: UsageHistoryState;
}

/** The usage chart by key, with its sums and its legend. */
export function UsageHistoryPanel(props: UsageHistoryPanelProps): JSX.Element {
  const span = (): TimeSpan => props.history.span();
  return (
    <Panel
      title={usageMetrics[shownMetric(props)].label}
      hint={<HistoryHint history={props.history} />}
      actions={<PanelActions {...props} />}
    >
      <ChartTotal {...props} />
      <UsageChart
        chart={props.history.chart()}
        before={props.history.before.chart()}
        ranked={props.history.ranked()}
        hiddenIds={props.filters.hiddenIds()}
        metric={shownMetric(props)}
        view={props.filters.view()}
        span={span()}
        bucketMinutes={props.history.bucketMinutes()}
        zoomed={props.history.chosen().zoom !== undefined}
        loading={props.history.isLoading()}
        failure={<NotLoaded error={props.history.query.error} />}
        onPlotWidth={props.history.setPlotWidth}
        onZoom={(zoom) => props.history.setZoom(zoom)}
        empty={<EmptyChart {...props} />}
      />
      <UsageLegend
        ranked={props.history.ranked()}
        filters={props.filters}
        chart={props.history.chart()}
        loading={props.history.isLoading()}
      />
    </Panel>
  );
}

type DrawnHistory = Pick<UsageBuckets, "span" | "barMinutes" | "fetchedAt" | "isLoading"> &
  Pick<TimeRangeState, "chosen"> & {
    query: { readonly isError: boolean };
    /** What is on the screen; undefined before the first response. */
    chart: () => { request: { timeRange: TimeRange } } | undefined;
  };

/** The range of the chart. If it is not the chosen one, also which one loads or that it could not be loaded. */
export function HistoryHint(props: { history: DrawnHistory; unit?: string }): JSX.Element {
  const chosenName = (): string => {
    const { preset, zoom } = props.history.chosen();
    return zoom === undefined ? presetLabel(preset) : "the zoom";
  };
  const loadsRange = (): boolean =>
    JSON.stringify(props.history.chart()?.request.timeRange) !== JSON.stringify(props.history.chosen());
  const shown = (): string => {
    const { from, to } = props.history.span();
    return `${spanLabel(from, to)} · ${bucketName(props.history.barMinutes())} ${props.unit ?? "bars"}`;
  };
  return (
    <Show when={props.history.chart()} fallback={props.history.isLoading() && "Loading…"}>
      {shown()}
      <Switch>
        <Match when={props.history.isLoading()}> · loading{loadsRange() ? ` ${chosenName()}` : ""}…</Match>
        <Match when={props.history.query.isError}> · loaded {zonedClockLabel(props.history.fetchedAt() ?? 0)}</Match>
      </Switch>
    </Show>
  );
}

/** The metric of the data in the chart. */
const shownMetric = ({ filters, history }: UsageHistoryPanelProps): UsageMetric =>
  history.chart()?.metric ?? filters.metric();

/** The sums over the keys in the chart, and how they compare with the period before. */
function ChartTotal(props: UsageHistoryPanelProps): JSX.Element {
  return (
    <p class="chart-total">
      <Show when={props.history.sums()} fallback={<strong>{props.history.isLoading() ? <Skeleton /> : "–"}</strong>}>
        {(sums) => (
          <>
            <strong>{compact(metricOf(sums(), shownMetric(props)))}</strong>
            <span>{count(sums().requests)} requests</span>
            <span>{count(sums().input)} in</span>
            <span>{count(sums().output)} out</span>
            <Comparison {...props} value={metricOf(sums(), shownMetric(props))} />
          </>
        )}
      </Show>
    </p>
  );
}

/** How the shown value compares with the period before, if that is asked for. */
function Comparison(props: UsageHistoryPanelProps & { value: number }): JSX.Element {
  return (
    <Show
      when={props.history.before.chart()}
      fallback={
        <>
          <Show when={props.history.before.isMissing()}>
            <span>The period before is not kept</span>
          </Show>
          <Show when={props.filters.compares() && props.history.hidesOther()}>
            <span>Show Other to compare with the period before</span>
          </Show>
        </>
      }
    >
      {(before) => {
        const earlier = (): number => metricOf(before().sums, shownMetric(props));
        return (
          <span class="comparison" title={`${count(earlier())} in the period before`}>
            <Show when={percentChange(props.value, earlier())} fallback="None">
              {(percent) => <b>{percent()}</b>}
            </Show>{" "}
            vs. {compact(earlier())}, {spanLabel(before().span.from, before().span.to)}
          </span>
        );
      }}
    </Show>
  );
}

function PanelActions(props: UsageHistoryPanelProps): JSX.Element {
  return (
    <>
      <SegmentedControl
        label="Chart"
        options={usageViewOptions}
        value={props.filters.view()}
        onChange={(view) => props.filters.setView(view)}
      />
      <ResetZoom state={props.history} />
      <button
        class="button"
        type="button"
        disabled={!props.history.isCurrent() || !props.history.sums()?.requests || props.history.isExporting()}
        onClick={() => props.history.exportCsv()}
      >
        <Icon name="download" />
        CSV
      </button>
    </>
  );
}

/** Why the chart has no bars, and what to do about it. */
function EmptyChart(props: UsageHistoryPanelProps): JSX.Element {
  return (
    <Switch fallback={<NoUsage filters={props.filters} />}>
      <Match when={props.history.sums()?.requests}>
        <EmptyState title={`No ${usageMetrics[shownMetric(props)].label.toLowerCase()} in this period`} />
      </Match>
      <Match when={props.history.ranked().length > 0}>
        <EmptyState title="All keys of this period are hidden">
          <button class="button" type="button" onClick={() => props.filters.setHiddenIds(new Set())}>
            Show all keys
          </button>
        </EmptyState>
      </Match>
    </Switch>
  );
}

function NoUsage(props: { filters: UsageFilters }): JSX.Element {
  return (
    <Show
      when={props.filters.isFiltered()}
      fallback={
        <EmptyState title="No requests in this period">
          <p>Choose a longer range, or send a request with one of the API keys.</p>
        </EmptyState>
      }
    >
      <EmptyState title="No matching key was used in this period">
        <button class="button" type="button" onClick={() => props.filters.clear()}>
          Clear filter
        </button>
      </EmptyState>
    </Show>
  );
}
