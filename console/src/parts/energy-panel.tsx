import { type JSX, Show } from "solid-js";
import type { EnergyPerTokens } from "../data/energy.ts";
import type { EnergyView } from "../data/use-energy.ts";
import { bucketName, compact, count, threeDigitsOf, wattHours, watts } from "../data/format.ts";
import { minuteMs, spanLabel } from "../data/seoul-time.ts";
import { rangeOptions } from "../data/time-range.ts";
import { Chart } from "../charts/chart.tsx";
import { Segmented } from "./controls.tsx";
import { Empty, Figure, Panel } from "./page.tsx";

const powerColour = 3;
const outputColour = 1;

/** Power over output tokens, on one axis of time, and what a thousand tokens cost in energy. */
export function EnergyPanel(props: { view: EnergyView }): JSX.Element {
  const view = (): EnergyView => props.view;
  const upTo = (): string =>
    view().powerMinutes() === 1
      ? "every minute counts at its"
      : `every ${view().powerMinutes()} minutes count at their`;
  return (
    <Panel
      title="Energy beside tokens"
      hint={spanLabel(view().span().from, view().span().to)}
      actions={
        <>
          <Show when={view().view().zoom}>
            <button class="button" type="button" onClick={() => view().setZoom(undefined)}>
              Reset zoom
            </button>
          </Show>
          <Segmented
            label="Range"
            options={rangeOptions}
            value={view().view().range}
            onChange={(range) => view().setRange(range)}
          />
        </>
      }
    >
      <EnergyFigures energy={view().energy()} />
      <h3 class="chart-title">Power of all GPUs</h3>
      <PowerChart view={view()} />
      <h3 class="chart-title">Output tokens of all keys</h3>
      <OutputChart view={view()} />
      <p class="footnote">
        Energy is an upper bound: {upTo()} highest reading, summed over the GPUs. Tokens count in{" "}
        {bucketName(view().bucketMinutes())} buckets in which power was measured.
      </p>
    </Panel>
  );
}

function EnergyFigures(props: { energy: EnergyPerTokens | undefined }): JSX.Element {
  return (
    <dl class="figures inset">
      <Figure
        label="Wh per 1,000 output tokens"
        value={props.energy && perThousand(props.energy)}
        note="At most: see below"
      />
      <Figure label="Energy" value={props.energy && wattHours(props.energy.wattHours)} note="At most" />
      <Figure
        label="Output tokens"
        value={props.energy && compact(props.energy.outputTokens)}
        exact={count(props.energy?.outputTokens ?? 0)}
        note="While power was measured"
      />
    </dl>
  );
}

function PowerChart(props: { view: EnergyView }): JSX.Element {
  return (
    <Chart
      label="Power of all GPUs over time"
      summary={`Highest ${watts(props.view.peakPower())}, ${spanLabel(props.view.span().from, props.view.span().to)}.`}
      span={props.view.span()}
      bucketMs={props.view.powerMinutes() * minuteMs}
      kind="line"
      series={(stepMs) => [{ id: 1, label: "Power", colour: powerColour, values: props.view.powerIn(stepMs) }]}
      format={watts}
      whole={false}
      rows={(_, [drawn], step) => {
        const value = drawn?.values[step] ?? Number.NaN;
        return Number.isNaN(value) ? [] : [{ label: "Highest power", colour: powerColour, value: watts(value) }];
      }}
      onZoom={(zoom) => props.view.setZoom(zoom)}
      zoomed={props.view.view().zoom !== undefined}
      loading={props.view.isPowerLoading()}
      empty={<Empty title="No power was reported in this time." />}
    />
  );
}

function OutputChart(props: { view: EnergyView }): JSX.Element {
  return (
    <Chart
      label="Output tokens of all keys over time"
      summary={`${count(props.view.energy()?.outputTokens ?? 0)} output tokens while power was measured.`}
      span={props.view.span()}
      bucketMs={props.view.bucketMinutes() * minuteMs}
      kind="bars"
      series={(stepMs) => [{ id: 1, label: "Output", colour: outputColour, values: props.view.outputIn(stepMs) }]}
      format={compact}
      whole
      rows={(at, [drawn], step) => [
        { label: "Output tokens", colour: outputColour, value: count(drawn?.values[step] ?? 0) },
        { label: "Energy", colour: powerColour, value: wattHours(props.view.energyIn(at).wattHours) },
        { label: "Wh per 1,000", colour: -1, value: perThousand(props.view.energyIn(at)) },
      ]}
      onZoom={(zoom) => props.view.setZoom(zoom)}
      zoomed={props.view.view().zoom !== undefined}
      loading={props.view.isUsageLoading()}
      empty={<Empty title="No output tokens in this time." />}
    />
  );
}

const perThousand = ({ wattHoursPerThousand }: EnergyPerTokens): string =>
  wattHoursPerThousand === undefined ? "–" : threeDigitsOf(wattHoursPerThousand);
