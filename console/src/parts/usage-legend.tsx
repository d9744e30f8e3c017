import { For, type JSX, Show } from "solid-js";
import { count } from "../format.ts";
import { sumsIn } from "../history.ts";
import type { Span } from "../view.ts";
import type { RankedKey } from "./usage-chart.tsx";

interface UsageLegendProps {
  ranked: readonly RankedKey[];
  hidden: ReadonlySet<number>;
  span: Span;
  onHide: (ids: ReadonlySet<number>) => void;
}

/** The chart's keys with their sums; each can be taken out of the chart, the figures and the CSV. */
export function UsageLegend(props: UsageLegendProps): JSX.Element {
  const toggle = (id: number): void => {
    const ids = new Set(props.hidden);
    if (!ids.delete(id)) ids.add(id);
    props.onHide(ids);
  };
  return (
    <Show when={props.ranked.length > 0}>
      <div class="table-scroll legend">
        <table class="cards-on-phone">
          <caption class="visually-hidden">Keys in the chart</caption>
          <thead>
            <tr>
              <th scope="col">Key</th>
              <th scope="col" class="number">
                Requests
              </th>
              <th scope="col" class="number">
                Input
              </th>
              <th scope="col" class="number">
                Output
              </th>
            </tr>
          </thead>
          <tbody>
            <For each={props.ranked}>
              {(one) => (
                <tr classList={{ off: props.hidden.has(one.key.id) }}>
                  <th scope="row">
                    <label class="legend-key">
                      <input
                        type="checkbox"
                        class={`series-${one.colour}`}
                        checked={!props.hidden.has(one.key.id)}
                        onChange={() => toggle(one.key.id)}
                      />
                      <span>{one.key.name}</span>
                    </label>
                  </th>
                  <td class="number" data-label="Requests">
                    {count(sumsIn(one.key, props.span).requests)}
                  </td>
                  <td class="number" data-label="Input">
                    {count(sumsIn(one.key, props.span).input)}
                  </td>
                  <td class="number" data-label="Output">
                    {count(sumsIn(one.key, props.span).output)}
                  </td>
                </tr>
              )}
            </For>
          </tbody>
        </table>
      </div>
      <Show when={props.hidden.size > 0}>
        <p class="table-foot">
          {props.hidden.size} hidden.{" "}
          <button class="link" type="button" onClick={() => props.onHide(new Set())}>
            Show all
          </button>
        </p>
      </Show>
    </Show>
  );
}
