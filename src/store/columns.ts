import * as pg from "drizzle-orm/pg-core";
import { index, integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";

const identity = () => integer().primaryKey({ autoIncrement: true });
const boolean = () => integer({ mode: "boolean" });

/**
 * What the tables are made of, in words that every engine has its own types for. Another engine brings a kit of the same
 * names; the tables themselves are written once.
 */
export const sqliteColumns = {
  table: sqliteTable,
  /** An id that the database hands out once: after a delete it does not come back. */
  identity,
  /** 64 bits: ids, counters, and times counted from the epoch. */
  integer,
  real,
  text,
  boolean,
  primaryKey,
  index,
};

export type Columns = typeof sqliteColumns;

/** The same words for PostgreSQL. Its builders differ from SQLite's by type alone, which queries never look at. */
export const postgresColumns = {
  table: pg.pgTable,
  identity: () => pg.bigint({ mode: "number" }).primaryKey().generatedByDefaultAsIdentity(),
  integer: () => pg.bigint({ mode: "number" }),
  real: pg.doublePrecision,
  text: pg.text,
  boolean: pg.boolean,
  primaryKey: pg.primaryKey,
  index: pg.index,
} as unknown as Columns;
