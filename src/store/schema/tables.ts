import { getTableColumns, getTableName, isTable, type Table } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import * as schema from "./schema.ts";
import { StorageError } from "../store.ts";

/** The names of all tables of the schema. */
export const tableNames: readonly string[] = Object.values(schema)
  .filter((one) => isTable(one))
  .map(getTableName);

const casing = new CasingCache("snake_case");

/** The name in the database of a column of the schema. */
export function columnName(table: Table, name: string): string {
  const column = getTableColumns(table)[name];
  if (column === undefined) throw new Error(`${getTableName(table)} has no column ${name}`);
  return casing.getColumnCasing(column);
}

/** @throws StorageError if a table of the schema is not among those that exist */
export function requireTableNames(existing: readonly string[]): void {
  const missing = tableNames.find((name) => !existing.includes(name));
  if (missing !== undefined) throw new StorageError(`the table ${missing} is missing; restore a backup`);
}
