import { createMemo, type JSX, Show } from "solid-js";
import { type EnergyPerTokens, energyPerTokens, powerSteps } from "../energy.ts";
import { bucketName, compact, count, threeDigitsOf, wattHours, watts } from "../format.ts";
import { now } from "../now.ts";
import { useHistory, usePower } from "../resources.ts";
import { minuteMs, spanLabel } from "../seoul-time.ts";
import { type BucketQuery, bucketQuery, ranges, type Range, type Span, visibleSpan } from "../view.ts";
import { Chart } from "./chart/chart.tsx";
import type { Series } from "./chart/shapes.ts";
import { useView } from "./chart/zoom.ts";
import { Segmented } from "./controls.tsx";
import { Empty, Figure, Panel } from "./page.tsx";

const rangeOptions = Object.entries(ranges).map(([value, { label }]) => ({ value: value as Range, label }));

const sameQuery = (a: BucketQuery, b: BucketQuery): boolean => a.days === b.days && a.bucketMinutes === b.bucketMinutes;

/** Power over output tokens, on one axis of time, and what a thousand tokens cost in energy. */
export function EnergyPanel(): JSX.Element {
  const { view, setRange, setZoom } = useView("24h");
  let keysSeen = 0;
  const asked = createMemo(() => bucketQuery(view(), now(), keysSeen), undefined, { equals: sameQuery });
  // Each power point counts its bucket at its maximum: the finer the buckets, the closer the bound.
  const powerAsked = createMemo(
    () => ({ days: asked().days, bucketMinutes: asked().days <= 7 || view().zoom !== undefined ? 1 : 5 }),
    undefined,
    { equals: sameQuery },
  );
  const usage = useHistory(asked);
  const power = usePower(powerAsked);
  const bucketMinutes = (): number => usage.data?.bucketMinutes ?? asked().bucketMinutes;
  const powerMinutes = (): number => power.data?.bucketMinutes ?? powerAsked().bucketMinutes;
  const span = createMemo(() => visibleSpan(view(), usage.data?.at ?? now(), bucketMinutes()), undefined, {
    equals: (a, b) => a.from === b.from && a.to === b.to,
  });

  const outputByBucket = createMemo(() => {
    const sums = new Map<number, number>();
    keysSeen = usage.data?.history.size ?? 0;
    for (const key of usage.data?.history.values() ?? []) {
      for (const [index, start] of key.starts.entries())
        sums.set(start, (sums.get(start) ?? 0) + (key.output[index] ?? 0));
    }
    return sums;
  });
  const energyIn = (within: Span): EnergyPerTokens =>
    energyPerTokens(
      { watts: power.data?.watts ?? new Map(), bucketMinutes: powerMinutes() },
      { byBucket: outputByBucket(), bucketMinutes: bucketMinutes() },
      within,
    );
  const energy = createMemo(() =>
    usage.data === undefined || power.data === undefined ? undefined : energyIn(span()),
  );

  const powerSeries = (stepMs: number): Series[] =>
    power.data === undefined
      ? []
      : [{ id: 1, label: "Power", colour: 3, values: powerSteps(power.data.watts, span(), stepMs) }];
  const outputSeries = (stepMs: number): Series[] => {
    const values = new Float64Array(Math.ceil((span().to - span().from) / stepMs));
    for (const [start, tokens] of outputByBucket()) {
      const step = Math.floor((start - span().from) / stepMs);
      if (step >= 0 && step < values.length) values[step] = (values[step] ?? 0) + tokens;
    }
    return [{ id: 1, label: "Output tokens", colour: 1, values }];
  };
  const peak = (): number =>
    Math.max(
      0,
      ...powerSteps(power.data?.watts ?? new Map(), span(), powerMinutes() * minuteMs).filter((value) => value > 0),
    );

  return (
    <Panel
      title="Energy beside tokens"
      hint={spanLabel(span().from, span().to)}
      actions={
        <>
          <Show when={view().zoom}>
            <button class="button" type="button" onClick={() => setZoom(undefined)}>
              Reset zoom
            </button>
          </Show>
          <Segmented label="Range" options={rangeOptions} value={view().range} onChange={setRange} />
        </>
      }
    >
      <dl class="figures inset">
        <Figure
          label="Wh per 1,000 output tokens"
          value={energy() && perThousand(energy())}
          note="At most: see below"
        />
        <Figure label="Energy" value={energy() && wattHours(energy()?.wattHours ?? 0)} note="At most" />
        <Figure
          label="Output tokens"
          value={energy() && compact(energy()?.outputTokens ?? 0)}
          exact={energy() && count(energy()?.outputTokens ?? 0)}
          note="While power was measured"
        />
      </dl>
      <h3 class="chart-title">Power of all GPUs</h3>
      <Chart
        label="Power of all GPUs over time"
        summary={`Highest ${watts(peak())}, ${spanLabel(span().from, span().to)}.`}
        span={span()}
        bucketMs={powerMinutes() * minuteMs}
        kind="line"
        series={powerSeries}
        format={watts}
        whole={false}
        rows={(_, [drawn], step) => {
          const value = drawn?.values[step] ?? Number.NaN;
          return Number.isNaN(value) ? [] : [{ label: "Highest power", colour: 3, value: watts(value) }];
        }}
        onZoom={setZoom}
        zoomed={view().zoom !== undefined}
        loading={power.isPlaceholderData || power.data === undefined}
        empty={<Empty title="No power was reported in this time." />}
      />
      <h3 class="chart-title">Output tokens of all keys</h3>
      <Chart
        label="Output tokens of all keys over time"
        summary={`${count(energy()?.outputTokens ?? 0)} output tokens while power was measured.`}
        span={span()}
        bucketMs={bucketMinutes() * minuteMs}
        kind="bars"
        series={outputSeries}
        format={compact}
        whole
        rows={(at, [drawn], step) => [
          { label: "Output tokens", colour: 1, value: count(drawn?.values[step] ?? 0) },
          { label: "Energy", colour: 3, value: wattHours(energyIn(at).wattHours) },
          { label: "Wh per 1,000", colour: -1, value: perThousand(energyIn(at)) },
        ]}
        onZoom={setZoom}
        zoomed={view().zoom !== undefined}
        loading={usage.isPlaceholderData || usage.data === undefined}
        empty={<Empty title="No output tokens in this time." />}
      />
      <p class="footnote">
        Energy is an upper bound: every {powerMinutes() === 1 ? "minute" : `${powerMinutes()} minutes`}{" "}
        {powerMinutes() === 1 ? "counts" : "count"} at {powerMinutes() === 1 ? "its" : "their"} highest reading, summed
        over the GPUs. Tokens count in {bucketName(bucketMinutes())} buckets in which power was measured.
      </p>
    </Panel>
  );
}

const perThousand = (energy: EnergyPerTokens | undefined): string =>
  energy?.wattHoursPerThousand === undefined ? "–" : threeDigitsOf(energy.wattHoursPerThousand);
