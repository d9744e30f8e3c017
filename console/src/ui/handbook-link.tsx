import { A } from "@solidjs/router";
import type { JSX } from "solid-js";

/** @param props.to a chapter of the handbook, and a heading in it: `counting#no-usage-reported`. A test looks them up. */
export const HandbookLink = (props: { to: string; children: JSX.Element }): JSX.Element => (
  <A href={`/help/handbook/${props.to}`}>{props.children}</A>
);
