import type { JSX } from "solid-js";
import { count } from "../lib/format.ts";
import type { UsageSums } from "./usage-sums.ts";

/** @param props.label of its column, which a narrow screen shows beside it */
export const NumberCell = (props: { label: string; value: number }): JSX.Element => (
  <td class="number" data-label={props.label}>
    {count(props.value)}
  </td>
);

/** The columns that all usage tables share. */
export const UsageCells = (props: { sums: UsageSums }): JSX.Element => (
  <>
    <NumberCell label="Requests" value={props.sums.requests} />
    <NumberCell label="Input" value={props.sums.input} />
    <NumberCell label="Output" value={props.sums.output} />
  </>
);
