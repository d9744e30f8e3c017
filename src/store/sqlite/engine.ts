import { latestMigration, type Migration, readMigrations } from "../schema/migrations.ts" with { type: "macro" };
import { tables } from "../schema/schema.ts";
import { constants, Database } from "bun:sqlite";
import { closeSync, fdatasyncSync, openSync, statSync } from "node:fs";
import { eq, sql, and, getTableName } from "drizzle-orm";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { type Engine, type KeySums, orZero, groupRows } from "../engine/engine.ts";
import { ensureDatabaseFile, markCreated, requireNotMoved } from "./database-file.ts";
import { migrate } from "./migrate.ts";
import { createSpaceReleaser } from "./release-space.ts";
import { requireTableNames, columnName, primaryKeyOf } from "../schema/table-names.ts";
import { StorageError, toStorageError } from "../storage-error.ts";

/** How long a write waits for another process. SQLite blocks the thread meanwhile, so the reader of the main thread waits less. */
const writerBusyMs = 1000;
const readerBusyMs = 100;
/** Another process may be applying migrations. */
const openingBusyMs = 10_000;

/** SQLite's default for automatic checkpoints. */
const pagesPerCheckpoint = 1000;

/**
 * Opens the connection that creates the database if necessary, applies pending migrations and checkpoints: SQLite's
 * automatic checkpoints would let another connection sync the log's new beginning.
 * @throws StorageError if the data was moved to PostgreSQL
 */
export function openWriter(file: string, migrations: readonly Migration[] = readMigrations("migrations")) {
  requireNotMoved(file);
  ensureDatabaseFile(file);
  return asWriter(new Database(file, { readwrite: true, strict: true }), file, migrations);
}

/** @param client is closed if it fails */
export function asWriter(
  client: Database,
  file: string,
  migrations: readonly Migration[] = readMigrations("migrations"),
) {
  try {
    client.run(`PRAGMA busy_timeout = ${openingBusyMs}`);
    // An existing database would be written to, and not take it on.
    if (statSync(file).size === 0) client.run("PRAGMA auto_vacuum = INCREMENTAL");
    migrate(client, migrations);
    const existing = client.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    requireTableNames(existing.map(({ name }) => name));
    // Again: a move holds the lock until it has marked the folder.
    requireNotMoved(file);
    markCreated(file);
    // Two processes that do this to a new database at once get SQLITE_BUSY immediately, whatever the busy timeout.
    whileBusy(
      openingBusyMs,
      () => client.run("PRAGMA journal_mode = WAL"),
      () => Bun.sleepSync(10),
    );
    keepLog(client);
    client.run(`PRAGMA busy_timeout = ${writerBusyMs}`);
    client.run("PRAGMA synchronous = NORMAL");
    client.run("PRAGMA foreign_keys = ON");
    client.run("PRAGMA temp_store = MEMORY");
    // A long read lets the log grow; the next checkpoint truncates it to this size.
    client.run(`PRAGMA journal_size_limit = ${64 * 1024 * 1024}`);
    client.run("PRAGMA wal_autocheckpoint = 0");
    const checkpointLog = client.query("PRAGMA wal_checkpoint(PASSIVE)");
    const findLog = client.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)");
    const logPages = (): number => findLog.get()?.log ?? 0;
    /** The log's length after the last checkpoint: it stays while a reader or writer is in the way. */
    let pagesSeen = 0;
    // Closed last: a process that closes any descriptor of a file gives up its locks on it.
    const descriptor = openSync(file, "r");
    const engine = createSqliteEngine(client);
    return {
      ...engine,
      /** Whether the write-ahead log has grown by 1000 pages since the last checkpoint, whichever connection wrote them. */
      isCheckpointDue: () => {
        const pages = logPages();
        pagesSeen = Math.min(pagesSeen, pages);
        return pages - pagesSeen >= pagesPerCheckpoint;
      },
      /**
       * Copies the write-ahead log into the database file, and syncs it, which takes 5 to 500 ms: others may write meanwhile. If
       * they do, SQLite would leave its sync to `checkpoint` (3.54).
       */
      copyLog: () => {
        checkpointLog.get();
        fdatasyncSync(descriptor);
      },
      /**
       * Copies what others wrote since `copyLog`, in about a millisecond, and begins the log anew with `write`. Both sync. The
       * log is not begun anew if others write meanwhile.
       */
      checkpoint: async (write: () => unknown): Promise<void> => {
        checkpointLog.get();
        pagesSeen = logPages();
        await write();
      },
      /** Gives some free pages back to the disk. Not to be called within a transaction. @returns how many */
      releaseSpace: createSpaceReleaser(client),
      close: () => {
        moveLogIntoFile(client);
        engine.close();
        closeSync(descriptor);
      },
    };
  } catch (error) {
    client.close();
    throw error;
  }
}

/** Opens a connection that cannot write. The database must exist. */
export function openReader(file: string): Engine {
  const client = new Database(file, { readwrite: true, strict: true });
  client.run(`PRAGMA busy_timeout = ${readerBusyMs}`);
  client.run("PRAGMA query_only = ON");
  keepLog(client);
  return createSqliteEngine(client);
}

/**
 * Opens a second connection that writes, for a thread that must not wait: a locked database is an error at once, and its
 * commits neither sync a file nor checkpoint.
 */
export function openDirectWriter(file: string): Engine {
  const client = new Database(file, { readwrite: true, strict: true });
  for (const pragma of ["busy_timeout = 0", "synchronous = NORMAL", "foreign_keys = ON", "wal_autocheckpoint = 0"]) {
    client.run(`PRAGMA ${pragma}`);
  }
  keepLog(client);
  const begin = client.query("BEGIN IMMEDIATE");
  return createSqliteEngine(client, () => begin.run());
}

/** Closing leaves the emptied log and its index: on a full disk, the next start could not make room for them. */
function keepLog(client: Database): void {
  client.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
}

/** Never notified: waiting on it sleeps for fractions of a millisecond, which Bun.sleepSync cannot (1.4.5). Remove when it can. */
const neverNotified = new Int32Array(new SharedArrayBuffer(4));

/**
 * Polls for the write lock about every half millisecond. SQLite's own busy handler sleeps for up to 100 ms between two
 * tries, and starves while other processes write constantly: with four of them a flush waited for up to a second.
 */
function beginImmediate(client: Database): void {
  client.run("PRAGMA busy_timeout = 0");
  try {
    whileBusy(
      writerBusyMs,
      () => client.run("BEGIN IMMEDIATE"),
      // Random, so that two processes do not stay in step.
      () => Atomics.wait(neverNotified, 0, 0, 0.2 + Math.random() * 0.6),
    );
  } finally {
    client.run(`PRAGMA busy_timeout = ${writerBusyMs}`);
  }
}

function whileBusy(maxMs: number, work: () => unknown, pause: () => unknown): void {
  const deadline = performance.now() + maxMs;
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
      pause();
    }
  }
}

/** Whether another connection has the lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");
}

/** Leaves everything in the database file. If another process has it open, the log remains and nothing is lost. */
function moveLogIntoFile(client: Database): void {
  try {
    client.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch (error) {
    if (!isBusy(error)) throw error;
  }
}

/** @param begin takes the write lock */
function createSqliteEngine(client: Database, begin: () => void = () => beginImmediate(client)): Engine {
  const db = drizzle(client, { casing: "snake_case" });
  const commit = client.query("COMMIT");
  return {
    db,
    tables,
    jsonRows: (array) => sql`json_each(${array})`,
    byIndex: eq,
    anyByIndex: (column, query) => sql`${column} in (${query})`,
    ...prepareStatements(client, db),
    rows: async (query) => db.all(query),
    groupsRows: false,
    hasOneWriter: true,
    find: (query, values) => query.get(values),
    pipeline: async (statements) => {
      // One at a time: a full disk ends the transaction, and a later statement would be committed without it.
      for (const statement of statements) await statement();
    },
    currentSecond: undefined,
    migrations: { table: "__drizzle_migrations", latest: latestMigration("migrations") },
    callFunction: undefined,
    // A transaction already has the whole database to itself.
    lock: async () => {},
    tryLock: async () => true,
    transaction: async (work) => {
      begin();
      try {
        const result = await work();
        commit.run();
        return result;
      } catch (error) {
        // A full disk has ended the transaction already.
        if (client.inTransaction) client.run("ROLLBACK");
        throw error;
      }
    },
    async savepoint(work) {
      client.run("SAVEPOINT part");
      try {
        return await work();
      } catch (error) {
        if (client.inTransaction) {
          client.run("ROLLBACK TO part");
          throw error;
        }
        // A refusal would be left out, and the rest written; a trigger that rolls back or a full disk has undone the rest too.
        const { message, isFull } = toStorageError(error);
        throw new StorageError(message, { cause: error, isFull });
      } finally {
        if (client.inTransaction) client.run("RELEASE part");
      }
    },
    async describe() {
      const found = client
        .query<{ version: string; bytes: number }, []>(
          "select sqlite_version() as version, page_count * page_size as bytes from pragma_page_count, pragma_page_size",
        )
        .get();
      return { kind: "sqlite", version: found?.version ?? "", sizeBytes: found?.bytes ?? 0 };
    },
    close: () => client.close(),
  };
}

/** A statement for this many rows takes two thirds of the time of one for each. */
const rowsPerInsert = 32;

/** The statements that are written in SQLite's own way, because they run often or have many rows. */
function prepareStatements(
  client: Database,
  db: Engine["db"],
): Pick<Engine, "prepareInsert" | "prepareDelete" | "prepareDeleteOldest" | "prepareKeySums"> {
  return {
    // Takes a fourth of the time of a statement that expands all rows from JSON (SQLite 3.54).
    prepareInsert: (table, columns, sums) => {
      const nameOf = (name: string): string => columnName(table, name);
      const added = sums?.added.map(nameOf).map((name) => `${name} = ${name} + excluded.${name}`) ?? [];
      const doesAdd = added.length === 0 ? "nothing" : `update set ${added.join()}`;
      const row = `(${columns.map(() => "?").join()})`;
      const statement = (count: number): string =>
        `insert into ${getTableName(table)} (${columns.map(nameOf).join()}) values ${Array(count).fill(row).join()}` +
        (sums === undefined ? "" : ` on conflict (${sums.key.map(nameOf).join()}) do ${doesAdd}`);
      const insert = client.prepare(statement(1));
      // Only few tables ever get so many rows at once.
      let insertMany: typeof insert | undefined;
      return (given) => async () => {
        const rows = sums === undefined || given.length < 2 ? given : groupRows(given, sums.key.length);
        let at = 0;
        for (; at + rowsPerInsert <= rows.length; at += rowsPerInsert) {
          insertMany ??= client.prepare(statement(rowsPerInsert));
          insertMany.run(...rows.slice(at, at + rowsPerInsert).flat());
        }
        for (; at < rows.length; at++) insert.run(...(rows[at] ?? []));
      };
    },
    prepareDelete: (table, columns) => {
      const conditions = columns.map((name) => `${columnName(table, name)} = ?`);
      const remove = client.prepare(`delete from ${getTableName(table)} where ${conditions.join(" and ")}`);
      return (rows) => async () => {
        for (const row of rows) remove.run(...row);
      };
    },
    prepareDeleteOldest: (table, column) => {
      const [name, time, key] = [getTableName(table), columnName(table, column), primaryKeyOf(table)];
      const oldest = `select ${key} from ${name} where ${time} < ? order by ${time} limit ?`;
      const remove = client.prepare<unknown, [number, number]>(`delete from ${name} where (${key}) in (${oldest})`);
      return async (before, maxRows) => remove.run(before, maxRows).changes;
    },
    prepareKeySums: <Name extends string>({ table, sums, where }: KeySums<Name>) => {
      const query = db
        .select(orZero(sums))
        .from(table)
        .where(and(eq(table.keyId, sql.placeholder("keyId")), where))
        .prepare();
      return async (keyIds, values) => {
        const found = new Map<number, Record<Name, number>>();
        for (const keyId of keyIds) found.set(keyId, query.get({ ...values, keyId }) as Record<Name, number>);
        return found;
      };
    },
  };
}
