import { type JSX, Match, Show, Switch } from "solid-js";
import { compact, count, percentChange } from "../lib/format.ts";
import { spanLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";
import { RangeHint, ResetZoom } from "../ui/chart-range.tsx";
import { SegmentedControl } from "../ui/controls.tsx";
import { Icon } from "../ui/icon.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { Skeleton } from "../ui/skeleton.tsx";
import { UsageChart } from "./usage-chart.tsx";
import { UsageLegend } from "./usage-legend.tsx";
import { metricOf, type UsageMetric, usageMetrics } from "./usage-sums.ts";
import { usageViewOptions } from "./usage-view.ts";
import type { KeyUsageState } from "./use-key-usage.ts";
import type { UsageFilters } from "./use-usage-filters.ts";

interface KeyUsagePanelProps {
  filters: UsageFilters;
  usage: KeyUsageState;
}

/** The usage chart by key, with its sums and its legend. */
export function KeyUsagePanel(props: KeyUsagePanelProps): JSX.Element {
  const span = (): TimeSpan => props.usage.span();
  return (
    <Panel
      title={usageMetrics[shownMetric(props)].label}
      hint={<RangeHint shown={props.usage} />}
      actions={<PanelActions {...props} />}
    >
      <ChartTotal {...props} />
      <UsageChart
        buckets={props.usage.data()}
        before={props.usage.before.data()}
        ranked={props.usage.ranked()}
        hiddenIds={props.filters.hiddenIds()}
        metric={shownMetric(props)}
        view={props.filters.view()}
        span={span()}
        bucketMinutes={props.usage.bucketMinutes()}
        zoomed={props.usage.chosen().zoom !== undefined}
        loading={props.usage.isLoading()}
        failure={<NotLoaded query={props.usage.query} />}
        onPlotWidth={props.usage.setPlotWidth}
        onZoom={(zoom) => props.usage.setZoom(zoom)}
        empty={<EmptyChart {...props} />}
      />
      <UsageLegend
        ranked={props.usage.ranked()}
        filters={props.filters}
        buckets={props.usage.data()}
        loading={props.usage.isLoading()}
      />
    </Panel>
  );
}

/** The metric of the data in the chart. */
const shownMetric = ({ filters, usage }: KeyUsagePanelProps): UsageMetric => usage.data()?.metric ?? filters.metric();

/** The sums over the keys in the chart, and how they compare with the period before. */
function ChartTotal(props: KeyUsagePanelProps): JSX.Element {
  return (
    <p class="chart-total">
      <Show when={props.usage.sums()} fallback={<strong>{props.usage.isLoading() ? <Skeleton /> : "–"}</strong>}>
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
function Comparison(props: KeyUsagePanelProps & { value: number }): JSX.Element {
  return (
    <Show
      when={props.usage.before.data()}
      fallback={
        <>
          <Show when={props.usage.before.isMissing()}>
            <span>The period before is not kept</span>
          </Show>
          <Show when={props.filters.compares() && props.usage.hidesOther()}>
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

function PanelActions(props: KeyUsagePanelProps): JSX.Element {
  return (
    <>
      <SegmentedControl
        label="Chart"
        options={usageViewOptions}
        value={props.filters.view()}
        onChange={(view) => props.filters.setView(view)}
      />
      <ResetZoom state={props.usage} />
      <button
        class="button"
        type="button"
        disabled={!props.usage.isCurrent() || !props.usage.sums()?.requests || props.usage.isExporting()}
        onClick={() => props.usage.exportCsv()}
      >
        <Icon name="download" />
        CSV
      </button>
    </>
  );
}

/** Why the chart has no bars, and what to do about it. */
function EmptyChart(props: KeyUsagePanelProps): JSX.Element {
  return (
    <Switch fallback={<NoUsage filters={props.filters} />}>
      <Match when={props.usage.sums()?.requests}>
        <EmptyState title={`No ${usageMetrics[shownMetric(props)].label.toLowerCase()} in this period`} />
      </Match>
      <Match when={props.usage.ranked().length > 0}>
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
