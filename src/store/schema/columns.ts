import * as pg from "drizzle-orm/pg-core";
import { index, integer, primaryKey, real, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

const identity = () => integer().primaryKey({ autoIncrement: true });
const rowId = () => integer().primaryKey();
const boolean = () => integer({ mode: "boolean" });

/** The column builders that the schema uses. Each engine has a set under the same names, so the tables are defined once. */
export const sqliteColumns = {
  table: sqliteTable,
  /** An id that the database assigns and never reuses, not even after a delete. */
  identity,
  /** The same, but an id may come again once all rows with higher ones are deleted. Writes one page less. */
  rowId,
  /** 64 bits: ids, counters, and times since the epoch. */
  integer,
  real,
  text,
  boolean,
  primaryKey,
  index,
  uniqueIndex,
};

export type Columns = typeof sqliteColumns;

/** The same for PostgreSQL. Its builders differ from those of SQLite only in types that the queries do not use. */
export const postgresColumns = {
  table: pg.pgTable,
  identity: () => pg.bigint({ mode: "number" }).primaryKey().generatedByDefaultAsIdentity(),
  rowId: () => pg.bigint({ mode: "number" }).primaryKey().generatedByDefaultAsIdentity(),
  integer: () => pg.bigint({ mode: "number" }),
  real: pg.doublePrecision,
  text: pg.text,
  boolean: pg.boolean,
  primaryKey: pg.primaryKey,
  index: pg.index,
  uniqueIndex: pg.uniqueIndex,
} as unknown as Columns;
