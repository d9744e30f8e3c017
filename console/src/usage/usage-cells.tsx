import type { JSX } from "solid-js";
import { NumberCell } from "../ui/number-columns.tsx";
import type { UsageSums } from "./usage-sums.ts";

/** The columns that all usage tables share. */
export const UsageCells = (props: { sums: UsageSums }): JSX.Element => (
  <>
    <NumberCell label="Requests" value={props.sums.requests} />
    <NumberCell label="Input" value={props.sums.input} />
    <NumberCell label="Output" value={props.sums.output} />
  </>
);
