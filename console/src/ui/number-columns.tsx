import { For, type JSX, Show } from "solid-js";
import { count } from "../lib/format.ts";
import { type Cost, costLabel, costTitle } from "../lib/money.ts";

/** The heads of columns of numbers. */
export const NumberHeads = (props: {
  labels: readonly string[];
  /** When some of them leave: see `shell.css`. */
  ranks?: Readonly<Record<string, string>>;
}): JSX.Element => (
  <For each={props.labels}>
    {(label) => (
      <th scope="col" class={`number ${props.ranks?.[label] ?? ""}`}>
        {label}
      </th>
    )}
  </For>
);

/** @param props.label of its column, which a narrow screen shows beside it */
export const NumberCell = (props: { label: string; value: number }): JSX.Element => (
  <td class="number" data-label={props.label}>
    {count(props.value)}
  </td>
);

/** @param props no cell without a currency; a cost that is not known is a dash */
export const CostCell = (props: { cost: Cost | undefined; currency: string | undefined }): JSX.Element => (
  <Show when={props.currency}>
    {(currency) => (
      <td class="number" data-label="Cost" title={props.cost && costTitle(props.cost)}>
        {props.cost === undefined ? "–" : costLabel(props.cost, currency())}
      </td>
    )}
  </Show>
);
