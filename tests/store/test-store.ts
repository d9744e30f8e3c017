import type { Clock } from "../../src/clock.ts";
import { createLog } from "../../src/log.ts";
import { createEngineStore, type EngineStore } from "../../src/store/engine-store.ts";
import { databaseFile, openStore } from "../../src/store/open.ts";
import { type Engine, openWriter } from "../../src/store/sqlite.ts";
import type { Store, UsageCount } from "../../src/store/store.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

export interface LogEntry {
  level: string;
  message: string;
  reason?: string;
}

/** A log that is read by the test. */
export function memoryLog() {
  const entries: LogEntry[] = [];
  const write = (line: string): void => void entries.push(JSON.parse(line));
  return { entries, log: createLog({ level: "debug", format: "json", clock: () => 0, write }) };
}

export interface TestStore extends AsyncDisposable {
  store: Store;
  folder: TempFolder;
  file: string;
  entries: LogEntry[];
}

/** A whole store, Worker and all, in a folder of its own unless one is given. */
export async function openTestStore(clock: Clock = Date.now, given?: TempFolder): Promise<TestStore> {
  const folder = given ?? createTempFolder();
  const { entries, log } = memoryLog();
  const store = await openStore({ dataDir: folder.path, clock, log });
  return {
    store,
    folder,
    file: databaseFile(folder.path),
    entries,
    async [Symbol.asyncDispose]() {
      await store.close();
      if (given === undefined) folder.remove();
    },
  };
}

export interface TestEngine extends Disposable {
  store: EngineStore;
  engine: Engine;
  file: string;
}

/** The same queries in this thread. */
export function openTestEngine(clock: Clock = Date.now): TestEngine {
  const folder = createTempFolder();
  const file = databaseFile(folder.path);
  const engine = openWriter(file);
  return {
    store: createEngineStore(engine, clock),
    engine,
    file,
    [Symbol.dispose]() {
      engine.close();
      folder.remove();
    },
  };
}

export async function createKeys(store: Pick<Store, "keys">, names: readonly string[]): Promise<number[]> {
  const ids: number[] = [];
  for (const name of names) {
    const created = await store.keys.create({ name, key: `secret of ${name}`, createdAt: 0 });
    if (created === "collision") throw new Error(`There is a key of ${name} already`);
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

/** A report whole, as the API would send it. */
export async function readReport<Row>(slices: AsyncIterable<Uint8Array>): Promise<Row[]> {
  const parts: Uint8Array[] = [];
  for await (const slice of slices) parts.push(slice);
  return JSON.parse(`[${Buffer.concat(parts).toString()}]`) as Row[];
}

export const usageCount = (count: Partial<UsageCount> & { keyId: number; minute: number }): UsageCount => ({
  requestCount: 1,
  inputTokens: 10,
  outputTokens: 2,
  lastClosedAt: count.minute * 60_000,
  ...count,
});
