import { statSync } from "node:fs";
import { join } from "node:path";
import type { WallClock } from "../../time/clock.ts";
import type { Log } from "../../log/log.ts";
import { claimBackup, removeUnfinishedBackup } from "./backup.ts";
import type { Engine } from "../engine.ts";
import type { SqlStore } from "../sql-store.ts";
import { prepareFindActiveKey } from "../keys.ts";
import { coalescePerTick } from "../../time/per-tick.ts";
import { openPostgresStore } from "../postgres/open.ts";
import { prepareFindSession } from "../sessions.ts";
import { openReader } from "./engine.ts";
import { toStorageError } from "../storage-error.ts";
import { type Store, StorageError } from "../store.ts";
import { keepWorker, type StorageWorker, startWorker } from "./worker-client.ts";

/** For a database that neither answers nor fails: a network disk that hangs, say. */
const answerTimeoutMs = 5000;

export interface StoreOptions {
  /** Created where it does not exist. Not looked at where there is a `databaseUrl`. */
  dataDir: string;
  /** `postgres://…`; undefined: SQLite in the data folder. */
  databaseUrl?: string | undefined;
  clock: WallClock;
  log: Log;
}

export const databaseFile = (dataDir: string): string => join(dataDir, "tollgate.db");

/**
 * Opens the database, and brings it up to date.
 * @throws StorageError where it cannot be opened, or a newer version wrote it
 */
export async function openStore({ databaseUrl, ...options }: StoreOptions): Promise<Store> {
  return databaseUrl === undefined
    ? await openSqliteStore(options)
    : await openPostgresStore({ url: databaseUrl, clock: options.clock });
}

async function openSqliteStore({ dataDir, clock, log }: StoreOptions): Promise<Store> {
  const file = databaseFile(dataDir);
  const worker = await keepWorker({ file, clock, log });
  // The Worker comes first: it creates the tables that the reader's statements name.
  const reader = openReader(file);
  return storeOver({ file, worker, reader, clock });
}

interface SqliteParts {
  file: string;
  worker: StorageWorker;
  reader: Engine;
  clock: WallClock;
}

function storeOver({ file, worker, reader, clock }: SqliteParts): Store {
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
    backup: (target) => backupDatabase({ file, target, clock }),
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

/** Breaks off, and leaves nothing behind, when the signal aborts. */
export interface Backup {
  file: string;
  target: string;
  clock: WallClock;
  signal?: AbortSignal;
}

/**
 * Copies a database that may be in use. A Worker of its own does it, so that counting goes on meanwhile.
 * @throws StorageError where `target` exists or cannot be written
 */
export async function backupDatabase({ file, target, clock, signal }: Backup): Promise<void> {
  explained(claimBackup)(target);
  const worker = startWorker(clock);
  const breakOff = (): void => worker.stop();
  signal?.addEventListener("abort", breakOff);
  try {
    await worker.call("backup", file, target);
  } catch (error) {
    if (signal?.aborted === true) removeUnfinishedBackup(target);
    throw error;
  } finally {
    signal?.removeEventListener("abort", breakOff);
    worker.stop();
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
