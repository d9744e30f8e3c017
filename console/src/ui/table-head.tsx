import { For, type JSX } from "solid-js";

/** The heads of columns of numbers. */
export const NumberHeads = (props: { labels: readonly string[] }): JSX.Element => (
  <For each={props.labels}>
    {(label) => (
      <th scope="col" class="number">
        {label}
      </th>
    )}
  </For>
);
