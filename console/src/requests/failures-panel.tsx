import { A, useNavigate } from "@solidjs/router";
import { createMemo, For, type JSX, Show } from "solid-js";
import { ChartLegend, type LegendItem } from "../charts/chart-legend.tsx";
import { Chart } from "../charts/chart.tsx";
import { count, plural } from "../lib/format.ts";
import { noFailure } from "../../../src/domain/requests.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { now } from "../lib/server-clock.ts";
import { type TimeSpan } from "../lib/time-range.ts";
import { add, lastHours, valuesInSteps } from "../lib/time-steps.ts";
import { requestsHref } from "../lib/requests-href.ts";
import { createBars } from "../ui/chart-range.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import { RelativeTime } from "../ui/relative-time.tsx";
import { SkeletonList } from "../ui/skeleton.tsx";
import {
  chartBucketMinutes as bucketMinutes,
  chartHours as hours,
  type Failures,
  type LoggedRequest,
  useFailuresQuery,
  useLastFailuresQuery,
} from "./queries.ts";
import { type RequestParameters, spanFilters } from "./request-filters.ts";
import { outcomeColour, outcomeLabel } from "./request-format.ts";
import { ResultBadge } from "./request-table.tsx";

/** The failures of the last day, of all keys or of one. Dragging opens the log of that time. */
export function FailuresPanel(props: { keyId?: number }): JSX.Element {
  const failures = useFailuresQuery(() => props.keyId);
  const span = (): TimeSpan => lastHours(hours, bucketMinutes, failures.data?.fetchedAt ?? now());
  const bars = createBars(span, () => bucketMinutes * minuteMs);
  const logLink = (more: RequestParameters & { open?: string } = {}): string =>
    requestsHref({ result: "failed", key: props.keyId === undefined ? undefined : String(props.keyId), ...more });
  return (
    <Panel
      title="Failures"
      query={failures}
      hint={`Last 24 hours${failures.data === undefined ? "" : ` · ${shareOf(failures.data)}`} · ${bars.name()}`}
      actions={
        <A class="button" href={logLink()}>
          Open the log
        </A>
      }
    >
      <FailuresChart query={failures} span={span()} onPlotWidth={bars.setPlotWidth} logLink={logLink} />
      <LastFailures keyId={props.keyId} logLink={logLink} />
    </Panel>
  );
}

function shareOf({ points }: Failures): string {
  const failed = points.reduce((sum, point) => sum + point.failed_count, 0);
  const all = points.reduce((sum, point) => sum + point.request_count, 0);
  const left = points.reduce((sum, point) => sum + (point.outcomes[noFailure] ?? 0), 0);
  const share = all === 0 ? "" : ` (${((failed / all) * 100).toFixed(1)}%)`;
  const others = left === 0 ? "" : ` · in ${count(left)} more the client left`;
  return `${count(failed)} of ${plural(all, "request")}${share}${others}`;
}

function FailuresChart(props: {
  query: ReturnType<typeof useFailuresQuery>;
  span: TimeSpan;
  onPlotWidth: (widthPx: number) => void;
  logLink: (more: RequestParameters & { open?: string }) => string;
}): JSX.Element {
  const navigate = useNavigate();
  const points = (): Failures["points"] => props.query.data?.points ?? [];
  /** Those that failed, the most frequent at the bottom; a completed one fails by its status. */
  const outcomes = createMemo(() => {
    const sums = new Map<string, number>();
    for (const point of points()) {
      for (const [outcome, value] of Object.entries(failedOutcomes(point))) {
        sums.set(outcome, (sums.get(outcome) ?? 0) + value);
      }
    }
    return [...sums].filter(([, sum]) => sum > 0).toSorted((a, b) => b[1] - a[1]);
  });
  const openLog = (zoom: TimeSpan | undefined): void => {
    if (zoom !== undefined) navigate(props.logLink(spanFilters(zoom)));
  };
  const legend = (): LegendItem[] =>
    outcomes().map(([outcome, sum]) => ({ label: label(outcome), colour: outcomeColour(outcome), value: count(sum) }));
  return (
    <>
      <Show when={outcomes().length > 0}>
        <ChartLegend items={legend()} />
      </Show>
      <Chart
        label="Failures over time"
        summary={`${outcomes()
          .map(([outcome, sum]) => `${label(outcome)}: ${count(sum)}`)
          .join(", ")}. Zooming opens the request log.`}
        span={props.span}
        onPlotWidth={props.onPlotWidth}
        bucketMs={bucketMinutes * minuteMs}
        kind="bars"
        series={(stepMs) =>
          outcomes().map(([outcome], index) => ({
            id: index,
            label: label(outcome),
            colour: outcomeColour(outcome),
            values: valuesInSteps(
              points(),
              { span: props.span, stepMs },
              (point) => failedOutcomes(point)[outcome] ?? 0,
              add,
            ),
          }))
        }
        format={count}
        whole
        rows={(_, series, step) =>
          series
            .filter(({ values }) => (values[step] || 0) > 0)
            .map(({ label: name, colour, values }) => ({ label: name, colour, value: count(values[step] || 0) }))
        }
        onZoom={openLog}
        loaded={props.query.data !== undefined}
        loading={props.query.isPending}
        failure={<NotLoaded query={props.query} />}
        empty={<EmptyState title="Nothing failed in the last 24 hours" />}
      />
    </>
  );
}

const label = (outcome: string): string =>
  outcome === "completed" ? "Error response of the backend" : outcomeLabel(outcome);

/** A request that completed without an error is not a failure; the rest of `failed_count` completed with one. */
function failedOutcomes({ outcomes, failed_count: failed }: Failures["points"][number]): Record<string, number> {
  const { completed: _, [noFailure]: _left, ...others } = outcomes;
  const known = Object.values(others).reduce((sum, value) => sum + value, 0);
  return { ...others, completed: Math.max(0, failed - known) };
}

function LastFailures(props: {
  keyId: number | undefined;
  logLink: (more: RequestParameters & { open?: string }) => string;
}): JSX.Element {
  const last = useLastFailuresQuery(() => props.keyId);
  return (
    <>
      <h3 class="chart-title">Last failures</h3>
      <Show when={last.data !== undefined || !last.isError} fallback={<NotLoaded query={last} />}>
        <Show when={last.data} fallback={<SkeletonList />}>
          {(requests) => (
            <ul class="list">
              <For each={requests()} fallback={<li class="faint">None in the request log</li>}>
                {(request) => <LastFailure request={request} logLink={props.logLink} />}
              </For>
            </ul>
          )}
        </Show>
      </Show>
    </>
  );
}

const LastFailure = (props: {
  request: LoggedRequest;
  logLink: (more: RequestParameters & { open?: string }) => string;
}): JSX.Element => (
  <li>
    <A class="name" href={props.logLink({ open: props.request.request_id })}>
      <ResultBadge request={props.request} />
      <span>
        <bdi>{props.request.key_name ?? "No key"}</bdi>, {props.request.path}
      </span>
    </A>
    <span class="faint">
      <RelativeTime at={Date.parse(props.request.ended_at)} />
    </span>
  </li>
);
