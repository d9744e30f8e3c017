import type { Key } from "./queries.ts";

/** The columns of the key table that can be sorted by, and which way the first click sorts. */
export const sortColumns = {
  name: "ascending",
  created: "descending",
  used: "descending",
  requests: "descending",
  input: "descending",
  output: "descending",
} as const;

export type SortColumn = keyof typeof sortColumns;
export type Direction = "ascending" | "descending";

export interface Sort {
  column: SortColumn;
  direction: Direction;
}

const byName = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const compare: Record<SortColumn, (a: Key, b: Key) => number> = {
  name: (a, b) => byName.compare(a.name, b.name),
  created: (a, b) => a.id - b.id,
  // Timestamps of one form in one zone sort as text; never used is before all of them.
  used: (a, b) => ((a.last_used_at ?? "") < (b.last_used_at ?? "") ? -1 : a.last_used_at === b.last_used_at ? 0 : 1),
  requests: (a, b) => a.total_request_count - b.total_request_count,
  input: (a, b) => a.total_input_tokens - b.total_input_tokens,
  output: (a, b) => a.total_output_tokens - b.total_output_tokens,
};

export function sortKeys(keys: readonly Key[], { column, direction }: Sort): Key[] {
  const sign = direction === "ascending" ? 1 : -1;
  return keys.toSorted((a, b) => sign * compare[column](a, b) || a.id - b.id);
}

/** Reads `used` or `-used`, the minus for descending. */
export function readSort(text: string | undefined): Sort {
  const column = text?.replace(/^-/, "") ?? "";
  if (text === undefined || !Object.hasOwn(sortColumns, column)) return { column: "created", direction: "ascending" };
  return { column: column as SortColumn, direction: text.startsWith("-") ? "descending" : "ascending" };
}

export const sortText = ({ column, direction }: Sort): string => (direction === "descending" ? `-${column}` : column);

/** What a click on a column's head leads to. */
export function nextSort(current: Sort, column: SortColumn): Sort {
  if (current.column !== column) return { column, direction: sortColumns[column] };
  return { column, direction: current.direction === "ascending" ? "descending" : "ascending" };
}
