import type { Key } from "./queries.ts";

/** The columns of the key table that can be sorted by, and which way the first click sorts. */
export const firstDirections = {
  name: "ascending",
  created: "descending",
  used: "descending",
  requests: "descending",
  input: "descending",
  output: "descending",
} as const;

export type KeySortColumn = keyof typeof firstDirections;
export type Direction = "ascending" | "descending";

export interface KeySort {
  column: KeySortColumn;
  direction: Direction;
}

const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const compare: Record<KeySortColumn, (a: Key, b: Key) => number> = {
  name: (a, b) => byName.compare(a.name, b.name),
  created: (a, b) => a.id - b.id,
  // Timestamps of one form in one zone sort as text; never used is before all of them.
  used: (a, b) => ((a.last_used_at ?? "") < (b.last_used_at ?? "") ? -1 : a.last_used_at === b.last_used_at ? 0 : 1),
  requests: (a, b) => a.total_request_count - b.total_request_count,
  input: (a, b) => a.total_input_tokens - b.total_input_tokens,
  output: (a, b) => a.total_output_tokens - b.total_output_tokens,
};

export function sortKeys(keys: readonly Key[], { column, direction }: KeySort): Key[] {
  const sign = direction === "ascending" ? 1 : -1;
  return keys.toSorted((a, b) => sign * compare[column](a, b) || a.id - b.id);
}

/** Reads `used` or `-used`, the minus for descending. */
export function parseKeySort(text: string | undefined): KeySort {
  const column = text?.replace(/^-/, "") ?? "";
  if (text === undefined || !Object.hasOwn(firstDirections, column))
    return { column: "created", direction: "ascending" };
  return { column: column as KeySortColumn, direction: text.startsWith("-") ? "descending" : "ascending" };
}

export const formatKeySort = ({ column, direction }: KeySort): string =>
  direction === "descending" ? `-${column}` : column;

/** What a click on a column's head leads to. */
export function nextKeySort(current: KeySort, column: KeySortColumn): KeySort {
  if (current.column !== column) return { column, direction: firstDirections[column] };
  return { column, direction: current.direction === "ascending" ? "descending" : "ascending" };
}
