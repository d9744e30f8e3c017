// What queries need of a database. `sqlite/engine.ts` and `postgres/engine.ts` implement it; queries are written once.
//
// It keeps true: what the two databases do differently is a member here that says so, and not a question in each query.
// On SQLite calls must not overlap; on PostgreSQL each transaction has a connection to itself. It knows the tables, and
// no query.

import { type SQL, sql, type SQLWrapper } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { SQLiteColumn, SQLiteTable } from "drizzle-orm/sqlite-core";
import type { DatabaseStore } from "./contract.ts";
import type { Tables } from "../schema/schema.ts";
import type { KeyId } from "../../domain/keys.ts";

/** A database as the queries see it. */
export interface Engine {
  /** Drizzle's query builders take the same calls for both engines but have different types: both are typed as SQLite's. */
  db: BunSQLiteDatabase;
  tables: Tables;
  /** The elements of a JSON array as rows with one column, `value`. */
  jsonRows: (array: ReturnType<typeof sql.placeholder>) => SQL;
  /**
   * Joins a table to such rows by its index. PostgreSQL expects a hundred of them, and for these would read the whole table
   * while it has less than some 50,000 rows.
   */
  byIndex: (column: SQLiteColumn, value: SQL) => SQL;
  /** The same of a column that has one of the values of a query: beside a second such column, `in` reads the whole table too. */
  anyByIndex: (column: SQLiteColumn, query: SQL) => SQL;
  /**
   * Prepares a statement that inserts rows, given as values in the order of the columns; other columns have their default.
   * @param sums for rows that exist, by their `key`, the first columns: those to which the values are added; none leaves them
   * as they are. Rows of one key are added up before
   * @param computed what columns get instead of a value; on PostgreSQL only
   */
  prepareInsert: (
    table: SQLiteTable,
    columns: readonly string[],
    sums?: { key: readonly string[]; added: readonly string[] },
    computed?: Readonly<Record<string, SQL>>,
  ) => (rows: readonly RowValues[]) => Statement;
  /** Prepares a statement that deletes the rows with these values in the columns. */
  prepareDelete: (
    table: SQLiteTable,
    columns: readonly string[],
  ) => (rows: readonly (readonly (string | number)[])[]) => Statement;
  /** Prepares a statement that deletes the oldest rows whose `column` is below a value. It returns how many, up to `maxRows`. */
  prepareDeleteOldest: (table: SQLiteTable, column: string) => (before: number, maxRows: number) => Promise<number>;
  /**
   * Prepares sums over the rows of a table by key, with 0 where there are none. PostgreSQL finds those of all keys at once,
   * SQLite one after the other: that takes a fourth of the time (3.54).
   */
  prepareKeySums: <Name extends string>(
    query: KeySums<Name>,
  ) => (keyIds: readonly KeyId[], values: Record<string, unknown>) => Promise<Map<KeyId, Record<Name, number>>>;
  /**
   * Runs a query that is written as SQL, without a conversion of each value, which takes longer than the query if there are
   * thousands of rows. It returns numbers, and text in the columns that are named.
   */
  rows: <Row extends ColumnValues<Row>>(query: SQL, texts?: readonly TextColumn<Row>[]) => Promise<Row[]>;
  /** Whether queries group many rows. SQLite sorts them for that, which takes longer than to read them and to add them up here. */
  groupsRows: boolean;
  /** Whether all other writers wait for a transaction that writes. */
  hasOneWriter: boolean;
  /** Runs a prepared query that returns at most one row. SQLite returns it synchronously. */
  find: <Row>(query: PreparedQuery<Row>, values: Record<string, unknown>) => MaybePromise<Row | undefined>;
  /** Commits if `work` resolves, else rolls back. SQLite takes the write lock first; PostgreSQL repeats `work` after a deadlock. */
  transaction: <T>(work: () => Promise<T>) => Promise<T>;
  /** Within a transaction: undoes what `work` did if it fails, and nothing else. */
  savepoint: <T>(work: () => Promise<T>) => Promise<T>;
  /**
   * Runs statements of a transaction in order. PostgreSQL receives them without waiting for the results in between; if one
   * fails, those after it fail too.
   */
  pipeline: (statements: readonly Statement[]) => Promise<void>;
  /** Advisory lock: until the transaction ends, other transactions wait here for the same name. */
  lock: (name: string) => Promise<void>;
  /** Takes that lock if no other transaction has it. @returns whether this one has it */
  tryLock: (name: string) => Promise<boolean>;
  /** The second since the epoch by the database's clock; undefined where it has none, and all use ours. */
  currentSecond: SQL | undefined;
  /** Calls a function that a migration made, with its argument as JSON. Undefined where the database has none. */
  callFunction: ((name: string, argument: object) => Promise<unknown>) | undefined;
  /** Where the database has its migrations, and the last one that this build knows. */
  migrations: { table: string; latest: number };
  /** The database itself: its version, and the bytes that it takes on disk. */
  describe: DatabaseStore["describe"];
  close: () => void;
}

export interface KeySums<Name extends string> {
  table: SQLiteTable & { keyId: SQLiteColumn };
  sums: Readonly<Record<Name, SQL>>;
  where?: SQL | undefined;
}

export type Statement = () => PromiseLike<unknown>;

export type ColumnValues<Row> = { [Column in keyof Row]: number | string | null };

export type TextColumn<Row> = { [Column in keyof Row]: Row[Column] extends string | null ? Column : never }[keyof Row];

interface PreparedQuery<Row> {
  get(values: Record<string, unknown>): Row | undefined;
}

/** Sums as numbers, 0 where there are no rows. */
export const orZero = (sums: Readonly<Record<string, SQL>>): Record<string, SQL<number>> =>
  Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, sql`coalesce(${sum}, 0)`.mapWith(Number)]));

/** Up to five milliseconds of work: flushes run between two slices. */
export const rowsPerSlice = 1000;

const encoder = new TextEncoder();

/** Encodes slices of JSON objects such that the chunks concatenate to one list, without the brackets. */
export async function* joinSlices(slices: AsyncIterable<string[]>): AsyncGenerator<Uint8Array> {
  let separator = "";
  for await (const slice of slices) {
    if (slice.length === 0) continue;
    yield encoder.encode(separator + slice.join(","));
    separator = ",";
  }
}

/** Encodes a report that is one piece of JSON; the parts before it are empty. */
export async function* encodeSlices(parts: AsyncIterable<string>): AsyncGenerator<Uint8Array> {
  for await (const part of parts) yield encoder.encode(part);
}

/** Values in the order of the columns. */
type RowValues = readonly (string | number | null)[];

/**
 * Adds rows up whose first `keyLength` values are the same. Sorted by these, so that concurrent flushes lock rows in the same
 * order.
 */
export function groupRows(rows: readonly RowValues[], keyLength: number): readonly RowValues[] {
  const groups = new Map<string, (string | number | null)[]>();
  for (const row of rows) {
    const key = row.slice(0, keyLength).join(" ");
    const sum = groups.get(key);
    if (sum === undefined) groups.set(key, [...row]);
    else for (let at = keyLength; at < row.length; at++) sum[at] = Number(sum[at]) + Number(row[at]);
  }
  return [...groups.values()].toSorted((a, b) => compareRows(a, b, keyLength));
}

function compareRows(a: RowValues, b: RowValues, keyLength: number): number {
  for (let at = 0; at < keyLength; at++) {
    const [left, right] = [a[at] ?? 0, b[at] ?? 0];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/**
 * SQLite's sum of integers fails beyond 64 bits. This one is exact up to 2^53, as JavaScript's numbers are; PostgreSQL adds
 * up floats several times as fast as its exact numbers.
 */
export const safeSum = (column: SQLWrapper): SQL => sql`sum(cast(${column} as double precision))`;

/** SQLite returns the result at once, PostgreSQL a promise of it: `await` takes either. */
export type MaybePromise<T> = T | Promise<T>;
