import { type JSX, Match, Show, Switch } from "solid-js";
import { UsageChart } from "../charts/usage-chart.tsx";
import { bucketName, compact, count } from "../data/format.ts";
import { dayMs } from "../data/seoul-time.ts";
import { now } from "../data/server-clock.ts";
import { spanLabel, zonedClockLabel } from "../data/time-labels.ts";
import { maxDays, rangePresets, type TimeSpan } from "../data/time-range.ts";
import { metricOf, usageMetrics } from "../data/usage-history.ts";
import type { UsageFilters } from "../data/use-usage-filters.ts";
import type { TimeRangeState } from "../data/use-time-range.ts";
import type { UsageBuckets } from "../data/use-usage-buckets.ts";
import type { UsageHistoryState } from "../data/use-usage-history.ts";
import { Icon } from "./icon.tsx";
import { EmptyState, NotLoaded, Panel } from "./panel.tsx";
import { Skeleton } from "./skeleton.tsx";
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
      title={usageMetrics[props.filters.metric()].label}
      hint={<HistoryHint history={props.history} />}
      actions={<PanelActions history={props.history} />}
    >
      <ChartTotal {...props} />
      <UsageChart
        ranked={props.history.ranked()}
        hiddenIds={props.filters.hiddenIds()}
        metric={props.filters.metric()}
        span={span()}
        bucketMinutes={props.history.bucketMinutes()}
        zoomed={props.history.chosen().zoom !== undefined}
        loaded={props.history.history() !== undefined}
        loading={props.history.isLoading()}
        failure={<NotLoaded error={props.history.query.error} />}
        onPlotWidth={props.history.setPlotWidth}
        onZoom={(zoom) => props.history.setZoom(zoom)}
        empty={<EmptyChart {...props} />}
      />
      <UsageLegend
        ranked={props.history.ranked()}
        hiddenIds={props.filters.hiddenIds()}
        span={span()}
        loading={props.history.isLoading()}
        onHide={(ids) => props.filters.setHiddenIds(ids)}
      />
    </Panel>
  );
}

type DrawnHistory = Pick<UsageBuckets, "span" | "barMinutes" | "fetchedAt" | "isLoading"> &
  Pick<TimeRangeState, "chosen"> & { history: () => unknown; query: { readonly isError: boolean } };

/** The range of the chart. If it is not the chosen one, also which one loads or that it could not be loaded. */
export function HistoryHint(props: { history: DrawnHistory; unit?: string }): JSX.Element {
  const chosenName = (): string => {
    const { preset, zoom } = props.history.chosen();
    return zoom === undefined ? rangePresets[preset].label : "the zoom";
  };
  const shown = (): string => {
    const { from, to } = props.history.span();
    return `${spanLabel(from, to)} · ${bucketName(props.history.barMinutes())} ${props.unit ?? "bars"}`;
  };
  return (
    <Show when={props.history.history()} fallback={props.history.isLoading() && "Loading…"}>
      {shown()}
      <Switch>
        <Match when={props.history.isLoading()}> · loading {chosenName()}…</Match>
        <Match when={props.history.query.isError}> · loaded {zonedClockLabel(props.history.fetchedAt() ?? 0)}</Match>
      </Switch>
    </Show>
  );
}

/** The sums over the keys in the chart. */
function ChartTotal(props: UsageHistoryPanelProps): JSX.Element {
  return (
    <p class="chart-total">
      <Show when={props.history.history()} fallback={<strong>{props.history.isLoading() ? <Skeleton /> : "–"}</strong>}>
        <strong>{compact(metricOf(props.history.sums(), props.filters.metric()))}</strong>
        <span>{count(props.history.sums().requests)} requests</span>
        <span>{count(props.history.sums().input)} in</span>
        <span>{count(props.history.sums().output)} out</span>
      </Show>
    </p>
  );
}

function PanelActions(props: { history: UsageHistoryState }): JSX.Element {
  return (
    <>
      <Show when={props.history.chosen().zoom}>
        <button class="button" type="button" onClick={() => props.history.setZoom(undefined)}>
          Reset zoom
        </button>
      </Show>
      <button
        class="button"
        type="button"
        disabled={!props.history.isCurrent() || props.history.sums().requests === 0}
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
      <Match when={props.history.sums().requests > 0}>
        <EmptyState title={`No ${usageMetrics[props.filters.metric()].label.toLowerCase()} in this period`} />
      </Match>
      <Match when={props.history.span().to < now() - maxDays * dayMs}>
        <EmptyState title="Only daily usage is available for this period">
          <p>Usage by the minute is kept for {maxDays} days, daily usage forever.</p>
        </EmptyState>
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
