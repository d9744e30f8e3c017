import { For, type JSX, Show } from "solid-js";

export interface LegendItem {
  label: string;
  colour: number;
  /** Summed over the whole chart. */
  value?: string | undefined;
}

/** What the colours of a chart mean, above it. */
export const ChartLegend = (props: { items: readonly LegendItem[] }): JSX.Element => (
  <ul class="chart-total chart-legend">
    <For each={props.items} fallback={<li>{"\u00a0"}</li>}>
      {(item) => (
        <li>
          <span class={`swatch series-${item.colour}`} />
          {item.label}
          <Show when={item.value}>
            {" "}
            <b>{item.value}</b>
          </Show>
        </li>
      )}
    </For>
  </ul>
);
