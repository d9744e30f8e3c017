import { statSync } from "node:fs";
import { join } from "node:path";
import type { WallClock } from "../../time/clock.ts";
import type { Log } from "../../log/log.ts";
import type { Engine } from "../engine.ts";
import type { SqlStore } from "../sql-store.ts";
import { prepareFindActiveKey } from "../keys.ts";
import { coalescePerTick } from "../../time/per-tick.ts";
import { prepareFindSession } from "../sessions.ts";
import { openReader } from "./engine.ts";
import { toStorageError } from "../storage-error.ts";
import { type Store, StorageError } from "../store.ts";
import { keepWorker, type StorageWorker } from "./worker-client.ts";

/** For a database that neither answers nor fails: a network disk that hangs, say. */
const answerTimeoutMs = 5000;

export interface SqliteStoreOptions {
  /** Created if it does not exist. */
  dataDir: string;
  clock: WallClock;
  log: Log;
}

export const databaseFile = (dataDir: string): string => join(dataDir, "tollgate.db");

/**
 * Opens the SQLite database of a data folder and applies pending migrations.
 * @throws StorageError if it cannot be opened, or if a newer version of this program wrote it
 */
export async function openSqliteStore({ dataDir, clock, log }: SqliteStoreOptions): Promise<Store> {
  const file = databaseFile(dataDir);
  const worker = await keepWorker({ file, clock, log });
  // The Worker comes first: it creates the tables that the reader's statements name.
  const reader = openReader(file);
  return storeOver({ file, worker, reader });
}

interface SqliteParts {
  file: string;
  worker: StorageWorker;
  reader: Engine;
}

function storeOver({ file, worker, reader }: SqliteParts): Store {
  const remote = remoteOf(worker);
  const inode = findInode(file);
  const usage = remote("usage", ["add", "sumOfDay", "sumOfMinutes", "sumOfKeys"]);
  return {
    keys: {
      ...remote("keys", ["list", "create", "update", "delete", "countActive"]),
      findActive: coalescePerTick(explained(prepareFindActiveKey(reader))),
    },
    usage: {
      ...usage,
      daily: (sinceDay) => report(worker, "usage.daily", sinceDay),
      history: (range) => report(worker, "usage.history", range),
    },
    gpu: remote("gpu", ["add", "latest", "powerHistory"]),
    sessions: {
      ...remote("sessions", ["create", "extend", "delete", "deleteAll", "countLoginAttempt"]),
      find: explained(prepareFindSession(reader)),
    },
    settings: remote("settings", ["get", "set", "setIfAbsent"]),
    async checkWritable() {
      // SQLite goes on writing to a file that has no name any more (WAL, 3.54).
      if (findInode(file) !== inode) throw new StorageError("the database file was moved, deleted or replaced");
      await answerInTime(worker.call("checkWritable"));
    },
    async close() {
      reader.close();
      await answerInTime(worker.call("close")).catch(() => {});
      worker.stop();
    },
  };
}

const findInode = (file: string): number | undefined => statSync(file, { throwIfNoEntry: false })?.ino;

/** The methods of a noun as calls to the Worker, which runs the same interface over its engine. */
const remoteOf =
  (worker: StorageWorker) =>
  <Noun extends keyof SqlStore, Name extends keyof SqlStore[Noun] & string>(
    noun: Noun,
    names: readonly Name[],
  ): Pick<SqlStore[Noun], Name> =>
    Object.fromEntries(
      names.map((name) => [name, (...args: unknown[]) => worker.call(`${noun}.${name}`, ...args)]),
    ) as Pick<SqlStore[Noun], Name>;

/** The Worker reads the next slice when it is asked for, so a slow client slows its own query and nothing else. */
async function* report(worker: StorageWorker, name: string, ...args: unknown[]): AsyncGenerator<Uint8Array> {
  const id = await worker.call("read", name, ...args);
  try {
    for (;;) {
      const slice = await worker.call("next", id);
      if (!(slice instanceof Uint8Array)) return;
      yield slice;
    }
  } finally {
    await worker.call("leave", id).catch(() => {});
  }
}

const explained =
  <Args extends unknown[], Result>(find: (...args: Args) => Result) =>
  (...args: Args): Result => {
    try {
      return find(...args);
    } catch (error) {
      throw toStorageError(error);
    }
  };

function answerInTime(work: Promise<unknown>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(() => reject(new StorageError("the database does not answer")), answerTimeoutMs);
  work.then(() => resolve(), reject).finally(() => clearTimeout(timer));
  return promise;
}
