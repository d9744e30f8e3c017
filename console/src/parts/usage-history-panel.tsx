import { type JSX, Match, Show, Switch } from "solid-js";
import { bucketName, compact, count } from "../data/format.ts";
import { metricOf, metrics } from "../data/usage-history.ts";
import { now } from "../data/server-clock.ts";
import { dayMs, spanLabel } from "../data/seoul-time.ts";
import type { UsageFilters, UsageView } from "../data/use-usage-history.ts";
import { maxDays, type Span } from "../data/time-range.ts";
import { Icon } from "./icon.tsx";
import { Empty, Panel } from "./page.tsx";
import { UsageChart } from "../charts/usage-chart.tsx";
import { UsageLegend } from "./usage-legend.tsx";

interface HistoryPanelProps {
  filters: UsageFilters;
  usage: UsageView;
}

/** The chart by key, its sums, and the keys that it is made of. */
export function HistoryPanel(props: HistoryPanelProps): JSX.Element {
  const span = (): Span => props.usage.span();
  return (
    <Panel
      title={metrics[props.filters.metric()].label}
      hint={`${spanLabel(span().from, span().to)} · ${bucketName(props.usage.bucketMinutes())} buckets`}
      actions={<HistoryActions usage={props.usage} />}
    >
      <p class="chart-total">
        <strong>{compact(metricOf(props.usage.sums(), props.filters.metric()))}</strong>
        <span>{count(props.usage.sums().requests)} requests</span>
        <span>{count(props.usage.sums().input)} in</span>
        <span>{count(props.usage.sums().output)} out</span>
      </p>
      <UsageChart
        ranked={props.usage.ranked()}
        hidden={props.filters.hidden()}
        metric={props.filters.metric()}
        span={span()}
        bucketMinutes={props.usage.bucketMinutes()}
        zoomed={props.usage.view().zoom !== undefined}
        loading={props.usage.isLoading()}
        onZoom={(zoom) => props.usage.setZoom(zoom)}
        empty={<NothingDrawn {...props} />}
      />
      <UsageLegend
        ranked={props.usage.ranked()}
        hidden={props.filters.hidden()}
        span={span()}
        loading={props.usage.isLoading()}
        onHide={(ids) => props.filters.setHidden(ids)}
      />
    </Panel>
  );
}

function HistoryActions(props: { usage: UsageView }): JSX.Element {
  return (
    <>
      <Show when={props.usage.view().zoom}>
        <button class="button" type="button" onClick={() => props.usage.setZoom(undefined)}>
          Reset zoom
        </button>
      </Show>
      <button
        class="button"
        type="button"
        disabled={props.usage.sums().requests === 0}
        onClick={() => props.usage.exportCsv()}
      >
        <Icon name="download" />
        CSV
      </button>
    </>
  );
}

/** Why there is no bar, and the way to some. */
function NothingDrawn(props: HistoryPanelProps): JSX.Element {
  return (
    <Switch fallback={<NothingUsed filters={props.filters} />}>
      <Match when={props.usage.sums().requests > 0}>
        <Empty title={`No ${metrics[props.filters.metric()].label.toLowerCase()} in this time.`} />
      </Match>
      <Match when={props.usage.span().to < now() - maxDays * dayMs}>
        <Empty title="Only days are kept from so long ago.">
          <p>Use by the minute is kept for {maxDays} days; days are kept for ever.</p>
        </Empty>
      </Match>
      <Match when={props.usage.ranked().length > 0}>
        <Empty title="All keys of this time are hidden.">
          <button class="button" type="button" onClick={() => props.filters.setHidden(new Set())}>
            Show all keys
          </button>
        </Empty>
      </Match>
    </Switch>
  );
}

function NothingUsed(props: { filters: UsageFilters }): JSX.Element {
  return (
    <Show
      when={props.filters.isFiltered()}
      fallback={
        <Empty title="No requests in this time.">
          <p>Choose a longer range, or send a request with one of the API keys.</p>
        </Empty>
      }
    >
      <Empty title="No key that matches was used in this time.">
        <button class="button" type="button" onClick={() => props.filters.clear()}>
          Clear the filter
        </button>
      </Empty>
    </Show>
  );
}
