import { getTableColumns, getTableName, type Table } from "drizzle-orm";
import { CasingCache } from "drizzle-orm/casing";
import { getTableConfig, type SQLiteTable } from "drizzle-orm/sqlite-core";
import { tables } from "./schema.ts";
import { StorageError } from "../storage-error.ts";

/** The names of all tables of the schema. */
export const tableNames: readonly string[] = Object.values(tables).map(getTableName);

/** The table whose rows the database makes out of those of another one. */
export const derivedTable: string = getTableName(tables.usageModelMonth);

const casing = new CasingCache("snake_case");

/** The name in the database of a column of the schema. */
export function columnName(table: Table, name: string): string {
  const column = getTableColumns(table)[name];
  if (column === undefined) throw new Error(`${getTableName(table)} has no column ${name}`);
  return casing.getColumnCasing(column);
}

/** The columns of a table's primary key, as SQL. */
export function primaryKeyOf(table: SQLiteTable): string {
  const { columns, primaryKeys } = getTableConfig(table);
  const key = primaryKeys[0]?.columns ?? columns.filter(({ primary }) => primary);
  return key.map((column) => casing.getColumnCasing(column)).join();
}

/** @throws StorageError if a table of the schema is not among those that exist */
export function requireTableNames(existing: readonly string[]): void {
  const missing = tableNames.find((name) => !existing.includes(name));
  if (missing !== undefined) throw new StorageError(`the table ${missing} is missing; restore a backup`);
}
