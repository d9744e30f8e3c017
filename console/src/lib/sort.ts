type Direction = "ascending" | "descending";

/** The sortable columns of a table, and the direction of the first click. */
export type SortColumns<Column extends string> = Readonly<Record<Column, Direction>>;

export interface Sort<Column extends string> {
  column: Column;
  direction: Direction;
}

/** @param text `name` for ascending, `-name` for descending; undefined for anything unknown */
export function parseSort<Column extends string>(
  text: string | undefined,
  columns: SortColumns<Column>,
): Sort<Column> | undefined {
  const column = text?.replace(/^-/, "") ?? "";
  if (text === undefined || !Object.hasOwn(columns, column)) return undefined;
  return { column: column as Column, direction: text.startsWith("-") ? "descending" : "ascending" };
}

export const formatSort = ({ column, direction }: Sort<string>): string =>
  direction === "descending" ? `-${column}` : column;

/** The sort after a click on a column's head. */
export function nextSort<Column extends string>(
  current: Sort<Column> | undefined,
  column: Column,
  columns: SortColumns<Column>,
): Sort<Column> {
  if (current?.column !== column) return { column, direction: columns[column] };
  return { column, direction: current.direction === "ascending" ? "descending" : "ascending" };
}
