import { Database } from "bun:sqlite";
import { closeSync, mkdirSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { sql } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { Engine } from "../engine.ts";
import { migrate } from "./migrate.ts";
import { type Migration, readMigrations } from "../migrations.ts" with { type: "macro" };
import * as schema from "../schema.ts";
import { StorageError } from "../store.ts";

/** How long a write waits for another process's. It sleeps in its thread, which is why the reader's is short. */
const writerBusyMs = 1000;
const readerBusyMs = 100;
/** Another process may be bringing the database up to date. */
const openingBusyMs = 10_000;

/** Opens the one connection that writes; creates the database, or brings it up to date. */
export function openWriter(file: string, migrations: readonly Migration[] = readMigrations("migrations")): Engine {
  createPrivately(file);
  const client = new Database(file, { readwrite: true, strict: true });
  try {
    client.run(`PRAGMA busy_timeout = ${openingBusyMs}`);
    migrate(client, migrations);
    useWriteAheadLog(client);
    client.run(`PRAGMA busy_timeout = ${writerBusyMs}`);
    client.run("PRAGMA synchronous = NORMAL");
    client.run("PRAGMA foreign_keys = ON");
    client.run("PRAGMA temp_store = MEMORY");
    // A long read lets the log grow; the next checkpoint gives the disk back.
    client.run(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
    return engineOver(client, false);
  } catch (error) {
    client.close();
    throw error;
  }
}

/** Opens a connection that cannot write. The database has to exist. */
export function openReader(file: string): Engine {
  const client = new Database(file, { readwrite: true, strict: true });
  client.run(`PRAGMA busy_timeout = ${readerBusyMs}`);
  client.run("PRAGMA query_only = ON");
  return engineOver(client, true);
}

/** Keys lie in it as they are: the file is for its owner alone. SQLite gives its log files the same mode. */
function createPrivately(file: string): void {
  makeFolder(dirname(file));
  try {
    closeSync(openSync(file, "wx", 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new StorageError("the data folder is not a folder", { cause: error });
  }
}

/** Two processes that switch a new database over at once refuse each other without waiting, whatever the busy timeout. */
function useWriteAheadLog(client: Database): void {
  const deadline = performance.now() + openingBusyMs;
  for (;;) {
    try {
      client.run("PRAGMA journal_mode = WAL");
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      Bun.sleepSync(10);
    }
  }
}

/**
 * What nobody ever wakes: for waits that are shorter than the whole milliseconds that Bun.sleepSync knows (1.4.5).
 * Remove when it waits for fractions of a millisecond.
 */
const neverWoken = new Int32Array(new SharedArrayBuffer(4));

/**
 * SQLite's own busy handler sleeps for up to 100 ms between two tries, and starves beside processes that write all the
 * time: four of them made a flush wait for up to a second. A try about every half millisecond finds the gap between two
 * of theirs.
 */
function beginImmediately(client: Database): void {
  const deadline = performance.now() + writerBusyMs;
  client.run("PRAGMA busy_timeout = 0");
  try {
    for (;;) {
      try {
        client.run("BEGIN IMMEDIATE");
        return;
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error;
        // Spread, so that no two of them stay in step.
        Atomics.wait(neverWoken, 0, 0, 0.2 + Math.random() * 0.6);
      }
    }
  } finally {
    client.run(`PRAGMA busy_timeout = ${writerBusyMs}`);
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
}

/** Afterwards the file alone is complete. Where another process holds it, the log stays beside it and nothing is lost. */
function foldLog(client: Database): void {
  try {
    client.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
}

function engineOver(client: Database, readOnly: boolean): Engine {
  const db = drizzle(client, { casing: "snake_case" });
  return {
    db,
    tables: schema,
    jsonRows: (array) => sql`json_each(${array})`,
    rows: async (query) => db.all(query),
    find: (query, values) => query.get(values),
    pipeline: async (statements) => {
      // A full disk ends the transaction: what came behind would be written without it.
      for (const statement of statements) await statement();
    },
    // A transaction has the whole database to itself.
    lock: async () => {},
    transaction: async (work) => {
      beginImmediately(client);
      try {
        const result = await work();
        client.run("COMMIT");
        return result;
      } catch (error) {
        // A full disk ends the transaction by itself.
        if (client.inTransaction) client.run("ROLLBACK");
        throw error;
      }
    },
    close: () => {
      if (!readOnly) foldLog(client);
      client.close();
    },
  };
}
