import { getTableName, isTable } from "drizzle-orm";
import * as schema from "./schema.ts";
import { StorageError } from "./store.ts";

/** The names of all tables of the schema. */
export const tableNames: readonly string[] = Object.values(schema)
  .filter((one) => isTable(one))
  .map(getTableName);

/** @throws StorageError if a table of the schema is not among those that exist */
export function requireTableNames(existing: readonly string[]): void {
  const missing = tableNames.find((name) => !existing.includes(name));
  if (missing !== undefined) throw new StorageError(`the table ${missing} is missing; restore a backup`);
}
