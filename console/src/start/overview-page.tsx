// The overview (here), the help, and trying a request: playground and explanation.
//
// It keeps true: a new installation sees its first steps instead of an empty chart. The playground's key is in memory
// only (`playground-key.ts`), and goes with the session. An explanation sends nothing to the backend.

import { A, useNavigate } from "@solidjs/router";
import { createMemo, type JSX, Show } from "solid-js";
import { bucketName, compact, count, percentChange, plural, watts } from "../lib/format.ts";
import { queueText } from "../lib/queue-text.ts";
import { type TimeRange, type TimeSpan, zoomParameters } from "../lib/time-range.ts";
import { type Team, useHasTeams, useTeamsQuery } from "../queries.ts";
import { Figure } from "../ui/figure.tsx";
import { lazyPanels } from "../ui/lazy.tsx";
import { Page, type PageSource } from "../ui/page.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { CostFigure } from "../usage/cost-figure.tsx";
import { type RankedKey, rankKeys } from "../usage/key-ranking.ts";
import { UsageChart } from "../usage/usage-chart.tsx";
import { allUsage } from "../usage/usage-filters.ts";
import { usageViews } from "../usage/usage-view.ts";
import { type UsageSelection, type UsageSeries, useUsageSeries } from "../usage/use-usage-series.ts";
import { BusiestKeys, maxRows } from "./busiest-keys.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { GpuList } from "./gpu-list.tsx";
import { type Overview, useOverviewQuery } from "./queries.ts";
import { StatesPanel } from "./states-panel.tsx";

const TrafficPanels = lazyPanels(
  "Latency and failures",
  async () => (await import("../requests/traffic-panels.tsx")).TrafficPanels,
);

const lastDay: TimeRange = { preset: "24h", zoom: undefined };
const outputOfAllKeys: UsageSelection = {
  filter: allUsage,
  by: "key",
  metric: "output",
  top: usageViews.stacked.topCount,
  list: maxRows,
};

/** What an operator wants to know first. */
export function OverviewPage(): JSX.Element {
  const overview = useOverviewQuery();
  const hasTeams = useHasTeams();
  const usage = useUsageSeries(
    () => lastDay,
    () => outputOfAllKeys,
    1,
  );
  const ranked = createMemo<RankedKey[]>((before) => rankKeys(usage.data(), before), []);
  const isNew = (): boolean => overview.data?.today.request_count === 0 && usage.data()?.keyCount === 0;

  const sources = (): PageSource[] => [
    { name: "Current figures and GPUs", query: overview },
    { name: "Output tokens", query: usage.query, fetchedAt: usage.fetchedAt() },
  ];

  return (
    <Page title="Overview" help="watching#the-console" sources={sources()}>
      <TodayFigures overview={overview.data} failed={overview.isError} />
      <StatesPanel />
      <div class="side-by-side">
        <Show when={isNew() && overview.data} fallback={<OutputPanel usage={usage} ranked={ranked()} />}>
          {(data) => <FirstSteps overview={data()} />}
        </Show>
        <div class="columns">
          <Panel
            title="Busiest keys"
            hint="Last 24 hours"
            actions={
              <>
                <Show when={hasTeams()}>
                  <TeamsAtLimit />
                </Show>
                <Show when={overview.data?.keys_at_limit}>
                  {(atLimit) => (
                    <A class="button" href="/keys?state=at-limit">
                      {count(atLimit())} at a limit
                    </A>
                  )}
                </Show>
                <A class="button" href="/keys">
                  {overview.data ? plural(overview.data.active_keys, "active key") : "API keys"}
                </A>
              </>
            }
          >
            <Show
              when={usage.data() !== undefined || !usage.query.isError}
              fallback={<NotLoaded query={usage.query} />}
            >
              <BusiestKeys ranked={usage.data() && ranked()} keyCount={usage.data()?.keyCount ?? 0} />
            </Show>
          </Panel>
          <Panel
            title="GPUs"
            hint={overview.data && powerHint(overview.data)}
            actions={
              <A class="button" href="/gpus">
                Open GPUs
              </A>
            }
          >
            <Show when={overview.data !== undefined || !overview.isError} fallback={<NotLoaded query={overview} />}>
              <GpuList gpus={overview.data?.gpus} />
            </Show>
          </Panel>
        </div>
      </div>
      <TrafficPanels />
    </Page>
  );
}

function TeamsAtLimit(): JSX.Element {
  const teams = useTeamsQuery(15_000);
  const atLimit = (): Team[] =>
    (teams.data ?? []).filter(({ limit_states: states }) => Object.values(states).some(({ left }) => left === 0));
  return (
    <Show when={atLimit().length}>
      {(length) => (
        <A class="button" href={length() === 1 ? `/keys/teams/${atLimit()[0]?.id}` : "/keys/teams"}>
          {plural(length(), "team")} at a limit
        </A>
      )}
    </Show>
  );
}

/** Today compared with yesterday up to the same time, and the current load. */
function TodayFigures(props: { overview: Overview | undefined; failed: boolean }): JSX.Element {
  return (
    <dl class="figures">
      <TodayFigure {...props} label="Requests today (KST)" field="request_count" />
      <TodayFigure {...props} label="Input tokens today (KST)" field="input_tokens" />
      <TodayFigure {...props} label="Output tokens today (KST)" field="output_tokens" />
      <CostFigure />
      <Figure
        label="In flight now"
        failed={props.failed}
        value={props.overview && count(props.overview.in_flight)}
        note={
          <Show when={props.overview}>
            {(overview) => (
              <A href="/requests/running" title="Output tokens in the last full minute">
                {queueText(overview().queue) ?? `${compact(overview().last_minute.output_tokens / 60)} tokens/s`}
              </A>
            )}
          </Show>
        }
      />
    </dl>
  );
}

function TodayFigure(props: {
  label: string;
  overview: Overview | undefined;
  failed: boolean;
  field: "request_count" | "input_tokens" | "output_tokens";
}): JSX.Element {
  const today = (): number | undefined => props.overview?.today[props.field];
  const yesterday = (): number => props.overview?.yesterday[props.field] ?? 0;
  return (
    <Figure
      label={props.label}
      failed={props.failed}
      value={today() === undefined ? undefined : compact(today() ?? 0)}
      exact={today() === undefined ? undefined : count(today() ?? 0)}
      note={
        <Show when={props.overview}>
          <span title={`${count(yesterday())} by this time yesterday`}>
            <Show when={percentChange(today() ?? 0, yesterday())} fallback="None by this time yesterday">
              {(percent) => (
                <>
                  <b>{percent()}</b> vs. this time yesterday
                </>
              )}
            </Show>
          </span>
        </Show>
      }
    />
  );
}

function OutputPanel(props: { usage: UsageSeries; ranked: readonly RankedKey[] }): JSX.Element {
  const navigate = useNavigate();
  const openZoom = (zoom: TimeSpan | undefined): void => {
    const { from, to } = zoomParameters(zoom);
    navigate(`/usage?from=${from}&to=${to}`);
  };
  return (
    <Panel
      title="Output tokens"
      hint={`Last 24 hours, by key · ${bucketName(props.usage.barMinutes())} bars`}
      actions={
        <A class="button" href="/usage">
          Open usage
        </A>
      }
    >
      <UsageChart
        buckets={props.usage.data()}
        ranked={props.ranked}
        metric="output"
        view="stacked"
        pans={false}
        span={props.usage.span()}
        bucketMinutes={props.usage.bucketMinutes()}
        zoomed={false}
        loading={props.usage.isLoading()}
        failure={<NotLoaded query={props.usage.query} />}
        onPlotWidth={props.usage.setPlotWidth}
        onZoom={openZoom}
        empty={<EmptyState title="No output tokens in the last 24 hours" />}
      />
    </Panel>
  );
}

const powerHint = (overview: Overview): string =>
  overview.power_draw_w === null ? "None reporting" : `${watts(overview.power_draw_w)} now`;
