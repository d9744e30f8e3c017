import type { JSX } from "solid-js";
import { count } from "../lib/format.ts";

const shownNames = 8;

/** The first names of a list, and how many there are beside them. */
export function KeyNames(props: { names: readonly string[] }): JSX.Element {
  const rest = (): number => props.names.length - shownNames;
  return (
    <span class="key-names">
      {props.names
        .slice(0, shownNames)
        .map((name) => `“${name}”`)
        .join(", ")}
      {rest() > 0 ? ` and ${count(rest())} more` : ""}
    </span>
  );
}
