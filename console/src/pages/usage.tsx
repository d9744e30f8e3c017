import { useSearchParams } from "@solidjs/router";
import { createMemo, type JSX, Show } from "solid-js";
import { downloadCsv } from "../csv.ts";
import { bucketName, compact, count } from "../format.ts";
import { addSums, historyCsv, isMetric, type Metric, metricOf, metrics, sumsIn } from "../history.ts";
import { Icon } from "../parts/icon.tsx";
import { FilterField, Segmented } from "../parts/controls.tsx";
import { useView } from "../parts/chart/zoom.ts";
import { Empty, Figure, Page, Panel } from "../parts/page.tsx";
import { type RankedKey, rankKeys, UsageChart } from "../parts/usage-chart.tsx";
import { DailyPanel } from "../parts/daily-panel.tsx";
import { UsageLegend } from "../parts/usage-legend.tsx";
import { now } from "../now.ts";
import { useHistory, useKeys, useSummary, useTotal } from "../resources.ts";
import { seoulMinute, spanLabel } from "../seoul-time.ts";
import { bucketQuery, ranges, type Range, visibleSpan } from "../view.ts";

const rangeOptions = Object.entries(ranges).map(([value, { label }]) => ({ value: value as Range, label }));
const metricOptions = Object.entries(metrics).map(([value, { short }]) => ({ value: value as Metric, label: short }));

type Filters = { metric?: string; q?: string; key?: string; hide?: string };

export function UsagePage(): JSX.Element {
  const [parameters, setParameters] = useSearchParams<Filters>();
  const { view, setRange, setZoom } = useView("24h");
  const metric = (): Metric => (isMetric(parameters.metric) ? parameters.metric : "output");
  const filter = (): string => parameters.q ?? "";
  const onlyKey = (): number | undefined => (parameters.key === undefined ? undefined : Number(parameters.key));
  const hidden = createMemo(() => new Set((parameters.hide ?? "").split(",").filter(Boolean).map(Number)));
  const shows = (id: number, name: string): boolean =>
    (onlyKey() === undefined || id === onlyKey()) && name.toLowerCase().includes(filter().trim().toLowerCase());

  const keys = useKeys();
  const nameOf = (id: number): string =>
    history.data?.history.get(id)?.name ?? keys.data?.find((key) => key.id === id)?.name ?? `Key ${id}`;

  const summary = useSummary();
  const total = useTotal();
  // Not a signal: how many keys there are bears on what is asked next, not on what is being asked.
  let keysSeen = 0;
  const asked = createMemo(() => bucketQuery(view(), now(), keysSeen), undefined, { equals: sameQuery });
  const history = useHistory(asked);

  const bucketMinutes = (): number => history.data?.bucketMinutes ?? asked().bucketMinutes;
  const span = createMemo(() => visibleSpan(view(), history.data?.at ?? now(), bucketMinutes()), undefined, {
    equals: (a, b) => a.from === b.from && a.to === b.to,
  });
  const ranked = createMemo<RankedKey[]>((before) => {
    const known = history.data?.history;
    if (known === undefined) return [];
    keysSeen = known.size;
    return rankKeys(known, metric(), span(), (key) => shows(key.id, key.name), before);
  }, []);
  const visible = createMemo(() => ranked().filter(({ key }) => !hidden().has(key.id)));
  const shownSums = createMemo(() => addSums(visible().map(({ key }) => sumsIn(key, span()))));

  const hide = (ids: ReadonlySet<number>): void =>
    setParameters({ hide: [...ids].toSorted((a, b) => a - b).join(",") }, { replace: true });
  const clearFilters = (): void => setParameters({ q: undefined, key: undefined, hide: undefined }, { replace: true });
  const isFiltered = (): boolean => filter() !== "" || onlyKey() !== undefined;

  const exportCsv = (): void => {
    const name = `usage-${bucketName(bucketMinutes())}-${seoulMinute(span().from)}-to-${seoulMinute(span().to)}.csv`;
    const shown = visible().map(({ key }) => key);
    downloadCsv(name.replaceAll(":", ""), historyCsv(shown, span()));
  };

  return (
    <Page title="Usage" queries={[history, summary, total]}>
      <dl class="figures">
        <SumFigure label="Requests today" today={summary.data?.request_count} all={total.data?.request_count} />
        <SumFigure label="Input tokens today" today={summary.data?.input_tokens} all={total.data?.input_tokens} />
        <SumFigure label="Output tokens today" today={summary.data?.output_tokens} all={total.data?.output_tokens} />
        <SumFigure label="Total tokens today" today={summary.data?.total_tokens} all={total.data?.total_tokens} />
      </dl>

      <div class="toolbar">
        <Segmented label="Range" options={rangeOptions} value={view().range} onChange={setRange} />
        <Segmented
          label="What to show"
          options={metricOptions}
          value={metric()}
          onChange={(chosen) => setParameters({ metric: chosen === "output" ? undefined : chosen }, { replace: true })}
        />
        <FilterField
          label="Filter keys by name"
          value={filter()}
          onInput={(text) => setParameters({ q: text }, { replace: true })}
        />
        <Show when={onlyKey()}>
          {(id) => (
            <button class="chip" type="button" onClick={() => setParameters({ key: undefined })}>
              {nameOf(id())}
              <Icon name="close" />
              <span class="visually-hidden">Show all keys</span>
            </button>
          )}
        </Show>
      </div>

      <Panel
        title={metrics[metric()].label}
        hint={
          <>
            {spanLabel(span().from, span().to)} · {bucketName(bucketMinutes())} buckets
          </>
        }
        actions={
          <>
            <Show when={view().zoom}>
              <button class="button" type="button" onClick={() => setZoom(undefined)}>
                Reset zoom
              </button>
            </Show>
            <button class="button" type="button" disabled={visible().length === 0} onClick={exportCsv}>
              <Icon name="download" />
              CSV
            </button>
          </>
        }
      >
        <p class="chart-total">
          <strong>{compact(metricOf(shownSums(), metric()))}</strong>
          <span>{count(shownSums().requests)} requests</span>
          <span>{count(shownSums().input)} in</span>
          <span>{count(shownSums().output)} out</span>
        </p>
        <UsageChart
          ranked={ranked()}
          hidden={hidden()}
          metric={metric()}
          span={span()}
          bucketMinutes={bucketMinutes()}
          zoomed={view().zoom !== undefined}
          loading={history.isPlaceholderData || history.data === undefined}
          onZoom={setZoom}
          empty={
            <Empty title={isFiltered() ? "No key that matches was used in this time." : "No requests in this time."}>
              <Show
                when={isFiltered()}
                fallback={<p>Choose a longer range, or send a request with one of the API keys.</p>}
              >
                <button class="button" type="button" onClick={clearFilters}>
                  Clear the filter
                </button>
              </Show>
            </Empty>
          }
        />
        <UsageLegend ranked={ranked()} hidden={hidden()} span={span()} onHide={hide} />
      </Panel>

      <DailyPanel
        shows={(row) => shows(row.key_id, row.key_name) && !hidden().has(row.key_id)}
        onClear={clearFilters}
      />
    </Page>
  );
}

const sameQuery = (a: { days: number; bucketMinutes: number }, b: { days: number; bucketMinutes: number }): boolean =>
  a.days === b.days && a.bucketMinutes === b.bucketMinutes;

function SumFigure(props: { label: string; today: number | undefined; all: number | undefined }): JSX.Element {
  return (
    <Figure
      label={props.label}
      value={props.today === undefined ? undefined : compact(props.today)}
      exact={props.today === undefined ? undefined : count(props.today)}
      note={
        <Show when={props.all !== undefined}>
          <span title={`${count(props.all ?? 0)} by the keys that exist, since each was created`}>
            {compact(props.all ?? 0)} all time
          </span>
        </Show>
      }
    />
  );
}
