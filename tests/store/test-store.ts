import type { Report } from "../../src/store/reports/contract.ts";
import { cpSync } from "node:fs";
import { sql } from "drizzle-orm";
import type { WallClock } from "../../src/time/clock.ts";
import { createLog } from "../../src/log/log.ts";
import { createSqlStore, type SqlStore } from "../../src/store/sql-store.ts";
import { openStore } from "../../src/store/open.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import type { Engine } from "../../src/store/engine/engine.ts";
import { openWriter } from "../../src/store/sqlite/engine.ts";
import { tableNames } from "../../src/store/schema/table-names.ts";
import type { Store } from "../../src/store/store.ts";
import { copyMigratedDatabase } from "../support/migrated-database.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { minuteOf } from "../../src/time/seoul.ts";
import type { UsageIncrement } from "../../src/domain/usage.ts";

export interface LogEntry {
  level: string;
  message: string;
  reason?: string;
}

/** A log whose entries the test reads. */
export function memoryLog(level: "debug" | "info" = "debug") {
  const entries: LogEntry[] = [];
  const write = (line: string): void => void entries.push(JSON.parse(line));
  return { entries, log: createLog({ level, format: "json", clock: () => 0, write }) };
}

/** A store on a database of its own. */
export interface TestStore extends AsyncDisposable {
  store: Store;
  /** What the store has logged. */
  entries: LogEntry[];
  /** Opens another store on the same database, like another process or a restart. */
  openAnother(): Promise<TestStore>;
}

export interface SqliteTestStore extends TestStore {
  folder: TempFolder;
  file: string;
}

/** A store with its Worker, in a folder of its own unless the caller passes one, which may be without a database. */
export async function openTestStore(
  clock: WallClock = Date.now,
  existingFolder?: TempFolder,
): Promise<SqliteTestStore> {
  const folder = existingFolder ?? createTempFolder();
  if (existingFolder === undefined) copyMigratedDatabase(folder.path);
  // Without what maintenance could not do while the database was away.
  const { entries, log } = memoryLog("info");
  const store = await openStore({ dataDir: folder.path, clock, log });
  return {
    store,
    folder,
    file: databaseFile(folder.path),
    entries,
    openAnother: () => openTestStore(clock, folder),
    async [Symbol.asyncDispose]() {
      await store.close();
      if (existingFolder === undefined) folder.remove();
    },
  };
}

/**
 * Copies the database of a closed store. This process keeps a lock on the original, because prepared statements keep its
 * connections open; the server of the copy has ended.
 */
export function copyFolder(from: TempFolder): TempFolder {
  const copy = createTempFolder();
  cpSync(from.path, copy.path, { recursive: true });
  return copy;
}

/** Only the queries, in this thread, on an empty database. */
export interface TestEngine extends AsyncDisposable {
  store: SqlStore;
  engine: Engine;
  /** Deletes all rows, and lets ids begin anew. The store goes on knowing the names of models. */
  clear(): Promise<void>;
}

export async function openTestEngine(clock: WallClock = Date.now): Promise<TestEngine> {
  const folder = createTempFolder();
  copyMigratedDatabase(folder.path);
  const engine = openWriter(databaseFile(folder.path));
  return {
    store: createSqlStore(engine, clock),
    engine,
    clear: () =>
      engine.transaction(async () => {
        for (const name of [...tableNames, "sqlite_sequence"]) engine.db.run(sql.raw(`delete from ${name}`));
      }),
    async [Symbol.asyncDispose]() {
      engine.close();
      folder.remove();
    },
  };
}

/** A round of maintenance. @returns how many steps it took */
export async function maintain(store: Pick<Store, "maintain">): Promise<number> {
  for (let steps = 1; ; steps++) if (!(await store.maintain())) return steps;
}

export async function createKeys(store: Pick<Store, "keys">, names: readonly string[]): Promise<number[]> {
  const ids: number[] = [];
  for (const name of names) {
    const created = await store.keys.create({ name, key: `secret of ${name}`, createdAt: 0 });
    if (typeof created === "string") throw new Error(`The key of ${name} already exists`);
    ids.push(created.id);
  }
  return ids;
}

export interface DailyRow {
  date: string;
  key_id: number;
  key_name: string;
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

export type HistoryPoint = Omit<DailyRow, "date"> & { bucket_start: string };

/** A whole report, as the API sends it. */
export async function readReport<Row>(slices: AsyncIterable<Uint8Array>): Promise<Row[]> {
  const parts: Uint8Array[] = [];
  for await (const slice of slices) parts.push(slice);
  return JSON.parse(`[${Buffer.concat(parts).toString()}]`) as Row[];
}

export const usageIncrement = (
  fields: Partial<UsageIncrement> & { keyId: number; minute: number },
): UsageIncrement => ({
  requestCount: 1,
  inputTokens: 10,
  outputTokens: 2,
  lastClosedAt: fields.minute * 60_000,
  ...fields,
});

/** Of what ended at an instant. */
export const usageAt = (keyId: number, at: number, fields: Partial<UsageIncrement> = {}): UsageIncrement =>
  usageIncrement({ keyId, minute: minuteOf(at), lastClosedAt: at, ...fields });

/** A report that is one piece of JSON. */
export async function readBody<Body>(slices: Report<Body>): Promise<Body> {
  const parts: Uint8Array[] = [];
  for await (const slice of slices) parts.push(slice);
  return JSON.parse(Buffer.concat(parts).toString()) as Body;
}
