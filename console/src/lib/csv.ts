import { csvLine } from "../../../src/domain/csv.ts";
import { download } from "./download.ts";

type Cell = string | number;

export const csv = (header: readonly string[], rows: readonly (readonly Cell[])[]): string =>
  [header, ...rows].map(csvLine).join("");

/**
 * Rows of the API with its field names. A value that is not known is empty.
 * @param separator between the values of a list
 */
export const csvOf = <Name extends string>(
  columns: readonly Name[],
  rows: readonly Readonly<Record<Name, Value>>[],
  separator = ", ",
): string =>
  csv(
    columns,
    rows.map((row) => columns.map((column) => cellOf(row[column], separator))),
  );

type Value = Cell | boolean | null | readonly string[];

function cellOf(value: Value, separator: string): Cell {
  if (value === null) return "";
  if (typeof value === "object") return value.join(separator);
  return typeof value === "boolean" ? String(value) : value;
}

/** Excel takes a file without this for one in the code page of the system, such as CP949. */
const byteOrderMark = "\ufeff";

export const downloadCsv = (fileName: string, text: string): void =>
  download(fileName, byteOrderMark + text, "text/csv;charset=utf-8");
