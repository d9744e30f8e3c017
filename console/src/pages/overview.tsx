import { A, useNavigate } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { percentChange, compact, count, plural, watts } from "../data/format.ts";
import { now } from "../data/server-clock.ts";
import { FirstSteps } from "../parts/first-steps.tsx";
import { RelativeTime } from "../parts/relative-time.tsx";
import { EmptyState, Figure, Page, Panel, Skeleton } from "../parts/page.tsx";
import { UsageChart } from "../charts/usage-chart.tsx";
import { type RankedKey, rankKeys } from "../data/key-ranking.ts";
import { type Overview, useUsageHistoryQuery, useOverviewQuery } from "../data/queries.ts";
import { bucketQuery, type TimeSpan, type TimeRange, visibleSpan, zoomParameters } from "../data/time-range.ts";

const lastDay: TimeRange = { preset: "24h", zoom: undefined };
const listedKeys = 6;

/** What an operator wants to know first; a new installation is shown its first steps instead of an empty chart. */
export function OverviewPage(): JSX.Element {
  const overview = useOverviewQuery();
  const asked = bucketQuery(lastDay, now(), 0);
  const history = useUsageHistoryQuery(() => asked);
  const navigate = useNavigate();

  const span = createMemo(() => visibleSpan(lastDay, history.data?.at ?? now(), asked.bucketMinutes), undefined, {
    equals: (a, b) => a.from === b.from && a.to === b.to,
  });
  const ranked = createMemo<RankedKey[]>(
    (before) => rankKeys(history.data?.history ?? new Map(), "output", span(), () => true, before),
    [],
  );
  const isNew = (): boolean =>
    overview.data !== undefined &&
    history.data !== undefined &&
    history.data.history.size === 0 &&
    overview.data.today.request_count === 0;
  const zoom = (to: TimeSpan | undefined): void => {
    const { from, to: end } = zoomParameters(to);
    navigate(`/usage?from=${from}&to=${end}`);
  };

  return (
    <Page title="Overview" queries={[overview, history]} actions={<Backend overview={overview.data} />}>
      <TodayFigures overview={overview.data} />
      <Show when={isNew()}>
        <FirstSteps
          hasKeys={(overview.data?.active_keys ?? 0) > 0}
          hasGpus={(overview.data?.gpus.length ?? 0) > 0}
          separatePorts={overview.data?.separate_ports ?? false}
        />
      </Show>
      <Show when={!isNew()}>
        <Panel
          title="Output tokens"
          hint="Last 24 hours, by key"
          actions={
            <A class="button" href="/usage">
              Open usage
            </A>
          }
        >
          <UsageChart
            ranked={ranked()}
            hiddenIds={new Set()}
            metric="output"
            span={span()}
            bucketMinutes={asked.bucketMinutes}
            zoomed={false}
            loading={history.data === undefined}
            onZoom={zoom}
            empty={<EmptyState title="No output tokens in the last 24 hours." />}
          />
        </Panel>
      </Show>
      <div class="columns">
        <Panel
          title="Busiest keys"
          hint="Last 24 hours"
          actions={
            <A class="button" href="/keys">
              {overview.data ? plural(overview.data.active_keys, "active key") : "API keys"}
            </A>
          }
        >
          <BusiestKeys ranked={history.data && ranked()} />
        </Panel>
        <Panel
          title="GPUs"
          hint={overview.data && gpuHint(overview.data)}
          actions={
            <A class="button" href="/gpus">
              Open GPUs
            </A>
          }
        >
          <GpuList overview={overview.data} />
        </Panel>
      </div>
    </Page>
  );
}

/** Today against yesterday at the same hour, and what runs now. */
function TodayFigures(props: { overview: Overview | undefined }): JSX.Element {
  return (
    <dl class="figures">
      <Today label="Requests today" overview={props.overview} field="request_count" />
      <Today label="Input tokens today" overview={props.overview} field="input_tokens" />
      <Today label="Output tokens today" overview={props.overview} field="output_tokens" />
      <Figure
        label="In flight now"
        value={props.overview && count(props.overview.in_flight)}
        note={
          <Show when={props.overview}>
            {(data) => (
              <span title="Output tokens over the last whole minute">
                {compact(data().last_minute.output_tokens / 60)} tokens/s
              </span>
            )}
          </Show>
        }
      />
    </dl>
  );
}

function Today(props: {
  label: string;
  overview: Overview | undefined;
  field: "request_count" | "input_tokens" | "output_tokens";
}): JSX.Element {
  const today = (): number | undefined => props.overview?.today[props.field];
  const before = (): number => props.overview?.yesterday[props.field] ?? 0;
  return (
    <Figure
      label={props.label}
      value={today() === undefined ? undefined : compact(today() ?? 0)}
      exact={today() === undefined ? undefined : count(today() ?? 0)}
      note={
        <Show when={props.overview}>
          <span title={`${count(before())} yesterday up to this minute`}>
            <Show when={percentChange(today() ?? 0, before())} fallback="None yesterday by now">
              {(percent) => (
                <>
                  <b>{percent()}</b> on yesterday by now
                </>
              )}
            </Show>
          </span>
        </Show>
      }
    />
  );
}

function Backend(props: { overview: Overview | undefined }): JSX.Element {
  return (
    <Show when={props.overview}>
      {(overview) => (
        <p class="status" data-state={overview().upstream.ok ? "good" : "bad"} role="status">
          {overview().upstream.ok ? "Backend answers" : "Backend does not answer"}
          <span class="faint" aria-live="off">
            <RelativeTime at={Date.parse(overview().upstream.checked_at)} />
          </span>
        </p>
      )}
    </Show>
  );
}

function BusiestKeys(props: { ranked: readonly RankedKey[] | undefined }): JSX.Element {
  const most = (): number => props.ranked?.[0]?.total ?? 0;
  const find = (id: number): RankedKey | undefined => props.ranked?.find(({ key }) => key.id === id);
  // Rows go by id, as in the legend of the usage page.
  const ids = (): number[] => (props.ranked ?? []).slice(0, listedKeys).map(({ key }) => key.id);
  const rest = (): number => Math.max(0, (props.ranked?.length ?? 0) - listedKeys);
  return (
    <Show when={props.ranked} fallback={<SkeletonList />}>
      <ol class="list">
        <For each={ids()} fallback={<EmptyState title="No key was used." />}>
          {(id) => <Show when={find(id)}>{(one) => <BusyKey one={one()} most={most()} />}</Show>}
        </For>
        <Show when={rest() > 0}>
          <li class="faint">
            <A href="/usage">and {count(rest())} more</A>
          </li>
        </Show>
      </ol>
    </Show>
  );
}

function BusyKey(props: { one: RankedKey; most: number }): JSX.Element {
  const share = (): number => (props.most === 0 ? 0 : props.one.total / props.most);
  return (
    <li>
      <A href={`/usage?key=${props.one.key.id}`} class="name" title={props.one.key.name}>
        <span class={`swatch series-${props.one.colour}`} />
        <span>{props.one.key.name}</span>
      </A>
      <span class="value">{compact(props.one.total)}</span>
      <span class={`share series-${props.one.colour}`} style={{ "--share": share() }} />
    </li>
  );
}

function GpuList(props: { overview: Overview | undefined }): JSX.Element {
  return (
    <Show when={props.overview} fallback={<SkeletonList />}>
      {(overview) => (
        <ul class="list">
          <For
            each={overview().gpus.slice(0, listedKeys)}
            fallback={
              <EmptyState title="No GPU has reported yet.">
                <A class="button" href="/gpus">
                  Add a GPU host
                </A>
              </EmptyState>
            }
          >
            {(gpu) => (
              <li classList={{ stale: gpu.stale }}>
                <span class="name" title={gpu.name}>
                  <span class="gpu-number">{gpu.gpu_id}</span>
                  <span>{gpu.name}</span>
                </span>
                <span class="value">
                  {gpu.stale ? "Stale" : gpu.power_draw_w === null ? "–" : watts(gpu.power_draw_w)}
                </span>
                <span class="share series-3" style={{ "--share": gpu.stale ? 0 : (gpu.utilization_pct ?? 0) / 100 }} />
              </li>
            )}
          </For>
          <Show when={overview().gpus.length > listedKeys}>
            <li class="faint">
              <A href="/gpus">and {count(overview().gpus.length - listedKeys)} more</A>
            </li>
          </Show>
        </ul>
      )}
    </Show>
  );
}

const gpuHint = (overview: Overview): string =>
  overview.power_draw_w === null ? "None reporting" : `${watts(overview.power_draw_w)} now`;

const SkeletonList = (): JSX.Element => (
  <ul class="list" aria-hidden="true">
    <For each={[1, 2, 3]}>
      {() => (
        <li>
          <Skeleton />
        </li>
      )}
    </For>
  </ul>
);
