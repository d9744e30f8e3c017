import { type JSX, Show } from "solid-js";
import type { EnergyPerTokens } from "../data/energy.ts";
import type { EnergyState } from "../data/use-energy.ts";
import { bucketName, compact, count, threeDigits, wattHours, watts } from "../data/format.ts";
import { minuteMs, spanLabel } from "../data/seoul-time.ts";
import { presetOptions } from "../data/time-range.ts";
import { Chart } from "../charts/chart.tsx";
import { SegmentedControl } from "./controls.tsx";
import { EmptyState, Figure, Panel } from "./page.tsx";

const powerColour = 3;
const outputColour = 1;

/** Power over output tokens, on one axis of time, and what a thousand tokens cost in energy. */
export function EnergyPanel(props: { state: EnergyState }): JSX.Element {
  const state = (): EnergyState => props.state;
  const upTo = (): string =>
    state().powerBucketMinutes() === 1
      ? "every minute counts at its"
      : `every ${state().powerBucketMinutes()} minutes count at their`;
  return (
    <Panel
      title="Energy beside tokens"
      hint={spanLabel(state().span().from, state().span().to)}
      actions={
        <>
          <Show when={state().timeRange().zoom}>
            <button class="button" type="button" onClick={() => state().setZoom(undefined)}>
              Reset zoom
            </button>
          </Show>
          <SegmentedControl
            label="Range"
            options={presetOptions}
            value={state().timeRange().preset}
            onChange={(range) => state().setPreset(range)}
          />
        </>
      }
    >
      <EnergyFigures energy={state().energy()} />
      <h3 class="chart-title">Power of all GPUs</h3>
      <PowerChart state={state()} />
      <h3 class="chart-title">Output tokens of all keys</h3>
      <OutputChart state={state()} />
      <p class="footnote">
        Energy is an upper bound: {upTo()} highest reading, summed over the GPUs. Tokens count in{" "}
        {bucketName(state().usageBucketMinutes())} buckets in which power was measured.
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

function PowerChart(props: { state: EnergyState }): JSX.Element {
  return (
    <Chart
      label="Power of all GPUs over time"
      summary={`Highest ${watts(props.state.peakPower())}, ${spanLabel(props.state.span().from, props.state.span().to)}.`}
      span={props.state.span()}
      bucketMs={props.state.powerBucketMinutes() * minuteMs}
      kind="line"
      series={(stepMs) => [{ id: 1, label: "Power", colour: powerColour, values: props.state.powerIn(stepMs) }]}
      format={watts}
      whole={false}
      rows={(_, [drawn], step) => {
        const value = drawn?.values[step] ?? Number.NaN;
        return Number.isNaN(value) ? [] : [{ label: "Highest power", colour: powerColour, value: watts(value) }];
      }}
      onZoom={(zoom) => props.state.setZoom(zoom)}
      zoomed={props.state.timeRange().zoom !== undefined}
      loading={props.state.isPowerLoading()}
      empty={<EmptyState title="No power was reported in this time." />}
    />
  );
}

function OutputChart(props: { state: EnergyState }): JSX.Element {
  return (
    <Chart
      label="Output tokens of all keys over time"
      summary={`${count(props.state.energy()?.outputTokens ?? 0)} output tokens while power was measured.`}
      span={props.state.span()}
      bucketMs={props.state.usageBucketMinutes() * minuteMs}
      kind="bars"
      series={(stepMs) => [{ id: 1, label: "Output", colour: outputColour, values: props.state.outputIn(stepMs) }]}
      format={compact}
      whole
      rows={(at, [drawn], step) => [
        { label: "Output tokens", colour: outputColour, value: count(drawn?.values[step] ?? 0) },
        { label: "Energy", colour: powerColour, value: wattHours(props.state.energyIn(at).wattHours) },
        { label: "Wh per 1,000", colour: -1, value: perThousand(props.state.energyIn(at)) },
      ]}
      onZoom={(zoom) => props.state.setZoom(zoom)}
      zoomed={props.state.timeRange().zoom !== undefined}
      loading={props.state.isUsageLoading()}
      empty={<EmptyState title="No output tokens in this time." />}
    />
  );
}

const perThousand = ({ wattHoursPerThousand }: EnergyPerTokens): string =>
  wattHoursPerThousand === undefined ? "–" : threeDigits(wattHoursPerThousand);
