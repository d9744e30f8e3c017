import type { JSX } from "solid-js";
import { count } from "../data/format.ts";
import type { UsageSums } from "../data/usage-history.ts";

/** Requests, input and output, as every table of usage has them side by side. */
export function UsageCells(props: { sums: UsageSums }): JSX.Element {
  return (
    <>
      <td class="number" data-label="Requests">
        {count(props.sums.requests)}
      </td>
      <td class="number" data-label="Input">
        {count(props.sums.input)}
      </td>
      <td class="number" data-label="Output">
        {count(props.sums.output)}
      </td>
    </>
  );
}
