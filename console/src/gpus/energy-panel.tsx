import { A } from "@solidjs/router";
import { type JSX, Show } from "solid-js";
import { Chart } from "../charts/chart.tsx";
import type { TooltipRow } from "../charts/tooltip.tsx";
import { bucketName, compact, count, threeDigits, wattHours, watts } from "../lib/format.ts";
import { type Cost, costLabel, money } from "../lib/money.ts";
import { minuteMs } from "../lib/seoul-time.ts";
import { spanLabel } from "../lib/time-labels.ts";
import { PresetControl, RangeHint } from "../ui/chart-range.tsx";
import { Figure } from "../ui/figure.tsx";
import { EmptyState, NotLoaded, Panel } from "../ui/panel.tsx";
import type { EnergyPerTokens } from "./energy.ts";
import type { EnergyState } from "./use-energy.ts";

const powerColour = 3;
const outputColour = 1;

/** Power and output tokens on one time axis, and the energy per thousand tokens. */
export function EnergyPanel(props: { state: EnergyState }): JSX.Element {
  return (
    <Panel
      title="Energy and tokens"
      hint={<RangeHint shown={{ ...props.state.usage, chosen: props.state.chosen }} />}
      actions={<PresetControl state={props.state} />}
    >
      <EnergyFigures
        energy={props.state.total()}
        cost={props.state.costIn(props.state.usage.span())}
        currency={props.state.currency()}
        hasNoPrices={props.state.arePricesMissing()}
        failed={props.state.usage.query.isError || props.state.power.query.isError}
      />
      <h3 class="chart-title">Power of all GPUs</h3>
      <PowerChart state={props.state} />
      <h3 class="chart-title">Output tokens of all keys</h3>
      <OutputChart state={props.state} />
      <p class="footnote">
        Energy is the mean power of each GPU in each minute, added up; time without a reading is left out. Tokens count
        only in {bucketName(props.state.usage.bucketMinutes())} buckets with a power reading.
      </p>
    </Panel>
  );
}

interface EnergyFiguresProps {
  energy: EnergyPerTokens | undefined;
  cost: Cost | undefined;
  currency: string;
  /** They could not be loaded. */
  hasNoPrices: boolean;
  failed: boolean;
}

function EnergyFigures(props: EnergyFiguresProps): JSX.Element {
  return (
    <dl class="figures inset">
      <Figure
        label="Wh per 1,000 output tokens"
        value={props.energy && perThousand(props.energy)}
        note="Over the time with power readings"
        failed={props.failed}
      />
      <Figure
        label="Energy"
        value={props.energy && wattHours(props.energy.wattHours)}
        note="Mean power × time"
        failed={props.failed}
      />
      <Figure
        label="Cost of energy"
        value={props.cost && costLabel(props.cost, props.currency)}
        note={
          <Show when={props.cost}>
            {(cost) => <CostNote cost={cost()} energy={props.energy} currency={props.currency} />}
          </Show>
        }
        failed={props.failed || props.hasNoPrices}
      />
      <Figure
        label="Output tokens"
        value={props.energy && compact(props.energy.outputTokens)}
        exact={props.energy && count(props.energy.outputTokens)}
        note="While power was measured"
        failed={props.failed}
      />
    </dl>
  );
}

/** Without a price, where to enter one. */
const CostNote = (props: Pick<EnergyFiguresProps, "energy" | "currency"> & { cost: Cost }): JSX.Element => (
  <Show when={props.cost.cost !== null} fallback={<A href="/settings/prices">Enter a price per kWh</A>}>
    <Show when={!props.cost.cost_is_partial} fallback="Not all of the time has a price">
      {perMillion(props.cost, props.energy, props.currency)}
    </Show>
  </Show>
);

function perMillion({ cost }: Cost, energy: EnergyPerTokens | undefined, currency: string): string {
  if (cost === null || energy === undefined || energy.outputTokens === 0) return "No output tokens";
  return `${money(cost / (energy.outputTokens / 1_000_000), currency)} for 1M output tokens`;
}

function PowerChart(props: { state: EnergyState }): JSX.Element {
  return (
    <Chart
      label="Power of all GPUs over time"
      summary={`Highest mean ${watts(props.state.peakPower())}, ${spanLabel(props.state.usage.span().from, props.state.usage.span().to)}.`}
      span={props.state.usage.span()}
      bucketMs={props.state.power.bucketMinutes() * minuteMs}
      kind="line"
      series={(stepMs) => [{ id: 1, label: "Power", colour: powerColour, values: props.state.powerIn(stepMs) }]}
      format={watts}
      whole={false}
      rows={(_, [drawn], step) => {
        const value = drawn?.values[step] ?? Number.NaN;
        return Number.isNaN(value) ? [] : [{ label: "Mean power", colour: powerColour, value: watts(value) }];
      }}
      onZoom={(zoom) => props.state.setZoom(zoom)}
      zoomed={props.state.chosen().zoom !== undefined}
      loaded={props.state.power.fetchedAt() !== undefined}
      loading={props.state.power.isLoading()}
      failure={<NotLoaded query={props.state.power.query} />}
      empty={<EmptyState title="No power readings in this period" />}
    />
  );
}

function OutputChart(props: { state: EnergyState }): JSX.Element {
  return (
    <Chart
      label="Output tokens of all keys over time"
      summary={outputSummary(props.state.total())}
      span={props.state.usage.span()}
      bucketMs={props.state.usage.bucketMinutes() * minuteMs}
      kind="bars"
      series={(stepMs) => [{ id: 1, label: "Output", colour: outputColour, values: props.state.outputIn(stepMs) }]}
      format={compact}
      whole
      rows={(at, [drawn], step) => [
        { label: "Output tokens", colour: outputColour, value: count(drawn?.values[step] ?? 0) },
        ...energyRows(props.state.totalIn(at)),
        ...costRows(props.state.costIn(at), props.state.currency()),
      ]}
      onZoom={(zoom) => props.state.setZoom(zoom)}
      zoomed={props.state.chosen().zoom !== undefined}
      loaded={props.state.usage.data() !== undefined}
      loading={props.state.usage.isLoading()}
      failure={<NotLoaded query={props.state.usage.query} />}
      onPlotWidth={props.state.usage.setPlotWidth}
      empty={<EmptyState title="No output tokens in this period" />}
    />
  );
}

const energyRows = (energy: EnergyPerTokens | undefined): TooltipRow[] =>
  energy === undefined
    ? []
    : [
        { label: "Energy", colour: powerColour, value: wattHours(energy.wattHours) },
        { label: "Wh per 1,000", colour: -1, value: perThousand(energy) },
      ];

const costRows = (cost: Cost | undefined, currency: string): TooltipRow[] =>
  cost === undefined || cost.cost === null
    ? []
    : [{ label: "Cost of energy", colour: -1, value: costLabel(cost, currency) }];

const outputSummary = (energy: EnergyPerTokens | undefined): string =>
  energy === undefined ? "" : `${count(energy.outputTokens)} output tokens while power was measured.`;

const perThousand = ({ wattHoursPerThousand }: EnergyPerTokens): string =>
  wattHoursPerThousand === undefined ? "–" : threeDigits(wattHoursPerThousand);
