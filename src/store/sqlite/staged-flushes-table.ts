import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Flushes of usage that are committed, and not yet added to the tables of counts. Nothing to do with SQLite's own journal. */
export const stagedFlushes = sqliteTable("usage_journal", {
  id: integer().primaryKey(),
  ledger: text().notNull(),
  flush: integer().notNull(),
  /** JSON: the flush's increments, and its part of the request log or null. */
  usage: text().notNull(),
});
