import { For, type JSX, Show } from "solid-js";
import { spanLabel } from "../lib/time-labels.ts";
import type { TimeSpan } from "../lib/time-range.ts";

export interface TooltipRow {
  label: string;
  /** See `Series`; -1 is a sum, without a swatch. */
  colour: number;
  value: string;
}

interface TooltipProps {
  /** Pixels from the chart's left edge. */
  x: number;
  chartWidth: number;
  /** Undefined: hidden. */
  span: TimeSpan | undefined;
  selecting: boolean;
  rows: TooltipRow[];
}

export function Tooltip(props: TooltipProps): JSX.Element {
  return (
    <div
      class="tooltip"
      aria-live="polite"
      hidden={props.span === undefined}
      classList={{ before: props.x > props.chartWidth / 2 }}
      style={{ "--x": `${props.x}px` }}
    >
      <p class="tooltip-time">{props.span && spanLabel(props.span.from, props.span.to)}</p>
      <Show when={!props.selecting} fallback={<p class="faint">Release or press Enter to zoom</p>}>
        <ul>
          <For each={props.rows} fallback={<li class="faint">No data</li>}>
            {(row) => (
              <li classList={{ sum: row.colour < 0 }}>
                <span class={`swatch series-${row.colour}`} />
                <span class="name">{row.label}</span>
                <span class="value">{row.value}</span>
              </li>
            )}
          </For>
        </ul>
      </Show>
    </div>
  );
}
