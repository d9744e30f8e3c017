import { For, type JSX } from "solid-js";
import type { TimeSpan } from "../lib/time-range.ts";
import { timeTicks, xOf } from "./scale.ts";
import { type Plot, yOf } from "./shapes.ts";

interface AxesProps {
  span: TimeSpan;
  plot: Plot;
  ticks: readonly number[];
  format: (value: number) => string;
}

export function Axes(props: AxesProps): JSX.Element {
  return (
    <>
      <For each={props.ticks}>
        {(tick) => (
          <g class="y-tick" transform={`translate(0 ${yOf(tick, props.plot)})`}>
            <line x2={props.plot.widthPx} />
            <text x="-10" dy="0.32em">
              {props.format(tick)}
            </text>
          </g>
        )}
      </For>
      <For each={timeTicks(props.span, props.plot.widthPx)}>
        {(tick) => (
          <text class="x-tick" x={xOf(tick.at, props.span, props.plot.widthPx)} y={props.plot.heightPx + 18}>
            {tick.label}
          </text>
        )}
      </For>
    </>
  );
}
