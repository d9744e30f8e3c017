import type { SQL, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { Tables } from "./schema.ts";
import type { MaybePromise } from "./store.ts";

/** What the queries need of a database: the stores of each noun are written over it, once for all engines. */
export interface Engine {
  /** Drizzle's builders of the engines take the same calls; their types are told apart, so all speak by SQLite's. */
  db: BunSQLiteDatabase;
  tables: Tables;
  /** The elements of a JSON array as rows with one column, `value`. */
  jsonRows: (array: ReturnType<typeof sql.placeholder>) => SQL;
  /** Runs a query that is written out. Each of its columns is a number. */
  rows: <Row extends NumberColumns<Row>>(query: SQL) => Promise<Row[]>;
  /** The one row of a prepared query; SQLite has it at once. */
  find: <Row>(query: PreparedQuery<Row>, values: Record<string, unknown>) => MaybePromise<Row | undefined>;
  /** Takes what locks it needs so that it cannot fail half way for want of them. */
  transaction: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Runs statements of a transaction in their order. To a server they go without waiting for each other's answers; where
   * one fails, those behind it fail too.
   */
  pipeline: (statements: readonly Statement[]) => Promise<void>;
  /** Until the transaction ends, nobody else comes past the same name. */
  lock: (name: string) => Promise<void>;
  close: () => void;
}

export type Statement = () => PromiseLike<unknown>;

export type NumberColumns<Row> = { [Column in keyof Row]: number | null };

interface PreparedQuery<Row> {
  get(values: Record<string, unknown>): Row | undefined;
}
