import type { JSX } from "solid-js";
import { count } from "../data/format.ts";
import type { UsageSums } from "../data/usage-history.ts";

/** The columns that all usage tables share. */
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
