// The overview (here), the help, and trying a request: playground and explanation.
//
// It keeps true: the overview says whether all is well by the list of states alone, and a list without rows is not there.
// A new installation sees its first steps instead of an empty chart. The playground's key is in memory only
// (`playground-key.ts`), and goes with the session. An explanation sends nothing to the backend.
// Removed: sums of today, the busiest keys, GPUs and latency, which have pages of their own.

import { A, useNavigate } from "@solidjs/router";
import { createMemo, createSignal, type JSX, Show } from "solid-js";
import { ChartLegend, type LegendItem } from "../charts/chart-legend.tsx";
import { bucketName, compact, count, plural } from "../lib/format.ts";
import { queueText } from "../lib/queue-text.ts";
import { type TimeRange, type TimeSpan, zoomParameters } from "../lib/time-range.ts";
import { useStatesQuery } from "../queries.ts";
import { SegmentedControl } from "../ui/controls.tsx";
import { Page, type PageSource } from "../ui/page.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { Skeleton } from "../ui/skeleton.tsx";
import { type RankedKey, rankKeys } from "../usage/key-ranking.ts";
import { UsageChart } from "../usage/usage-chart.tsx";
import { allUsage } from "../usage/usage-filters.ts";
import { otherLabel } from "../usage/usage-view.ts";
import { type UsageSelection, type UsageSeries, useUsageSeries } from "../usage/use-usage-series.ts";
import { FirstSteps } from "./first-steps.tsx";
import { type Overview, useOverviewQuery } from "./queries.ts";
import { ShortLists } from "./short-lists.tsx";
import { PastStates, StatesPanel } from "./states-panel.tsx";

const lastDay: TimeRange = { preset: "24h", zoom: undefined };
const charts = { total: 0, top5: 5 } as const;
const chartOptions = [
  { value: "total", label: "Total" },
  { value: "top5", label: "Top 5" },
] as const;

/** What an operator wants to know first: whether all is well. */
export function OverviewPage(): JSX.Element {
  const overview = useOverviewQuery();
  const states = useStatesQuery();
  const [chart, setChart] = createSignal<keyof typeof charts>("total");
  const selection = createMemo((): UsageSelection => {
    const top = charts[chart()];
    return { filter: allUsage, by: "key", metric: "output", top, list: top };
  });
  const usage = useUsageSeries(() => lastDay, selection, 1);
  const isNew = (): boolean => usage.data()?.keyCount === 0;

  const sources = (): PageSource[] => [
    { name: "What is wrong", query: states },
    { name: "Current figures", query: overview },
    { name: "Output tokens", query: usage.query, fetchedAt: usage.fetchedAt() },
  ];

  return (
    <Page title="Overview" help="watching#the-console" sources={sources()}>
      <p class="verdict">
        <b>{states.data ? verdictOf(states) : states.isError ? notKnown : <Skeleton />}</b>{" "}
        <Show when={overview.data}>{(data) => <Load overview={data()} />}</Show>
      </p>
      <StatesPanel />
      <Show
        when={isNew() && overview.data}
        fallback={
          <OutputPanel
            usage={usage}
            actions={<SegmentedControl label="Chart" options={chartOptions} value={chart()} onChange={setChart} />}
          />
        }
      >
        {(data) => <FirstSteps overview={data()} />}
      </Show>
      <ShortLists overview={overview.data} states={states.data} />
      <PastStates past={states.data?.past ?? []} />
    </Page>
  );
}

const notKnown = "Whether all is well is not known.";

/** What the server does not answer now may be wrong. */
function verdictOf({ data, isError }: ReturnType<typeof useStatesQuery>): string {
  if (isError || data === undefined) return notKnown;
  const loud = data.states.filter(({ silenced }) => silenced === null).length;
  const silenced = data.states.length - loud;
  const all = loud === 0 ? "All is well" : `${plural(loud, "thing")} ${loud === 1 ? "is" : "are"} wrong`;
  return `${all}${silenced === 0 ? "" : `, ${count(silenced)} silenced`}.`;
}

const Load = (props: { overview: Overview }): JSX.Element => (
  <>
    <A href="/requests/running" title="Output tokens in the last full minute">
      {count(props.overview.in_flight)} in flight,{" "}
      {queueText(props.overview.queue) ?? `${compact(props.overview.last_minute.output_tokens / 60)} tokens/s`}
    </A>{" "}
    at <A href="/backends">{plural(props.overview.backends, "backend")}</A>.
  </>
);

function OutputPanel(props: { usage: UsageSeries; actions: JSX.Element }): JSX.Element {
  const navigate = useNavigate();
  const ranked = createMemo<RankedKey[]>((before) => rankKeys(props.usage.data(), before), []);
  const openZoom = (zoom: TimeSpan | undefined): void => {
    const { from, to } = zoomParameters(zoom);
    navigate(`/usage?from=${from}&to=${to}`);
  };
  const legend = (): LegendItem[] => {
    const { other, sums } = props.usage.data() ?? {};
    if (ranked().length === 0) return sums ? [{ label: "All", colour: 1, value: compact(sums.output) }] : [];
    return [
      ...ranked().map(({ key, colour, total }) => ({ label: key.name, colour, value: compact(total) })),
      ...(other?.keyCount
        ? [{ label: otherLabel(other.keyCount, "key"), colour: 0, value: compact(other.sums.output) }]
        : []),
    ];
  };
  return (
    <Panel
      title="Output tokens"
      hint={`Last 24 hours · ${bucketName(props.usage.barMinutes())} bars`}
      actions={
        <>
          {props.actions}
          <A class="button" href="/usage">
            Open usage
          </A>
        </>
      }
    >
      <ChartLegend items={legend()} />
      <UsageChart
        buckets={props.usage.data()}
        ranked={ranked()}
        metric="output"
        view="stacked"
        span={props.usage.span()}
        bucketMinutes={props.usage.bucketMinutes()}
        loading={props.usage.isLoading()}
        failure={<NotLoaded query={props.usage.query} />}
        onPlotWidth={props.usage.setPlotWidth}
        onZoom={openZoom}
        empty={<EmptyState title="No output tokens in the last 24 hours" />}
      />
    </Panel>
  );
}
