// SQLite: one store over three connections. The storage thread (`worker.ts`) writes, and runs the queries that take
// long; the calling thread finds keys and commits small flushes and leases (`direct-writer.ts`), and looks up sessions,
// owners and revocations over a connection that only reads.
//
// It keeps true: only the storage thread folds staged flushes (`staged-flushes.ts`), deletes, and runs checkpoints,
// which sync files. A call to a database that neither responds nor fails ends in time. A file that is gone under a
// server is told of. Keys are cached until any key changes (`../keys/key-and-user-cache.ts`). It knows nothing of PostgreSQL.

import { existsSync, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import { coalescePerTick } from "../../time/per-tick.ts";
import { within } from "../../time/wait.ts";
import { prepareFindOwners } from "../usage/stored.ts";
import { prepareFindSession } from "../accounts/sessions.ts";
import type { SqlStore } from "../sql-store.ts";
import { toStorageError, StorageError } from "../storage-error.ts";
import { defaultRetention, type Retention } from "../retention.ts";
import { isReport, type Store } from "../store.ts";
import { findFileProblem, findProblemOfLog, logOf, requireAccess } from "./database-file.ts";
import { prepareFindActiveKey, prepareListEndings } from "../keys/keys.ts";
import type { FoundKey } from "../keys/contract.ts";
import { cacheKeys, cacheUsers } from "../keys/key-and-user-cache.ts";
import { createDirectWriter } from "./direct-writer.ts";
import { openReader } from "./engine.ts";
import { openKeysVersion } from "./keys-version.ts";
import { startRestartingWorker, type StorageWorker } from "./worker-client.ts";

/** Ends calls to a database that neither responds nor fails, such as one on a network disk that hangs. */
const callTimeoutMs = 5000;
const watchIntervalMs = 2000;

export const databaseFile = (dataDir: string): string => join(dataDir, "tollgate.db");

/**
 * Opens the SQLite database of a data folder and applies pending migrations.
 * @throws StorageError if it cannot be opened, or written though the disk has room, was lost, or belongs to a newer
 * version or another program
 */
export async function openSqliteStore(options: {
  /** Created if it does not exist. */
  dataDir: string;
  retention?: Retention;
  clock: WallClock;
  log: Log;
}): Promise<Store> {
  const { dataDir, retention = defaultRetention, clock, log } = options;
  const file = databaseFile(dataDir);
  let worker: StorageWorker | undefined;
  try {
    // The Worker opens first: it creates the tables that the statements of the reader need.
    worker = await startRestartingWorker({ file, retention, clock, log });
    await requireWritable(worker, log);
    return createSqliteStore(file, worker, await remoteStore(worker), { clock, log });
  } catch (error) {
    worker?.stop();
    if (existsSync(file)) requireAccess(file);
    throw toStorageError(error);
  }
}

/** A full disk does not keep a server from starting: keys are found, and counts wait. */
async function requireWritable(worker: StorageWorker, log: Log): Promise<void> {
  try {
    await withTimeout(worker.call("checkWritable"));
  } catch (error) {
    if (!(error instanceof StorageError) || !error.isFull) throw error;
    log.error("Disk full; counts wait in memory until there is room", { reason: error.message });
  }
}

const fileTexts = {
  gone: "Database file is gone; counts are lost unless it comes back",
  back: "Database file is back",
};
const logTexts = {
  gone: "Database log is gone; stop the server, which saves its counts, and start it again",
  back: "Database log is back",
};

/** Logs when the file disappears, since SQLite goes on writing to a deleted one (3.54, WAL). */
function watchFile(findProblem: FindProblem, { gone, back }: typeof fileTexts, log: Log): Timer {
  let latest: string | undefined;
  const check = async (): Promise<void> => {
    const problem = await findProblem();
    if (problem === latest) return;
    latest = problem;
    if (problem === undefined) log.info(back);
    else log.error(gone, { reason: problem });
  };
  return setInterval(() => void check(), watchIntervalMs);
}

/** @returns what has happened to a file since it was opened; undefined if nothing has */
type FindProblem = () => Promise<string | undefined>;

/**
 * @param worker writes, and runs the queries that take long
 * @param remote the store of the worker
 */
function createSqliteStore(
  file: string,
  worker: StorageWorker,
  remote: SqlStore,
  { clock, log }: { clock: WallClock; log: Log },
): Store {
  const { ino } = statSync(file);
  const logInode = statSync(logOf(file), { throwIfNoEntry: false })?.ino;
  const findProblem = () => findFileProblem(file, ino);
  // Of the log, which loses nothing once the database is closed.
  const findLogProblem = () => findProblemOfLog(file, logInode);
  // Finds keys and writes small flushes in the calling thread.
  const direct = createDirectWriter({ file, worker, clock, log });
  // Finds sessions in the calling thread, and keys while the other connection cannot: it waits for a lock.
  const reader = openReader(file);
  const watches = [watchFile(findProblem, fileTexts, log), watchFile(findLogProblem, logTexts, log)];
  const findByReader = prepareFindActiveKey(reader, clock);
  const lookUp = (key: string): ReturnType<typeof findByReader> => {
    try {
      return direct.findActive(key);
    } catch {
      return findByReader(key);
    }
  };
  const version = openKeysVersion(file);
  // The look-ups of SQLite are synchronous.
  const find = withStorageErrors(lookUp) as (key: string) => FoundKey | undefined;
  return {
    ...remote,
    keys: {
      ...remote.keys,
      listEndings: withStorageErrors(prepareListEndings(reader)),
      // Known keys too: requests that go on together wake other threads less often.
      findActive: coalescePerTick(cacheKeys(find, version, clock)),
    },
    subjects: { ...remote.subjects, see: cacheUsers(remote.subjects.see, version, clock) },
    usage: { ...remote.usage, add: direct.add, findOwners: prepareFindOwners(reader) },
    limits: { ...remote.limits, take: direct.take },
    sessions: { ...remote.sessions, find: withStorageErrors(prepareFindSession(reader)) },
    maintain: direct.maintain,
    async checkWritable() {
      const problem = (await findProblem()) ?? (await findLogProblem());
      if (problem !== undefined) throw new StorageError(problem);
      await withTimeout(worker.call("checkWritable"));
    },
    size: async () => ({ bytes: await bytesOf(file), logBytes: await bytesOf(logOf(file)) }),
    async close() {
      for (const watch of watches) clearInterval(watch);
      // A disk that hangs tells nothing.
      const problem = await withTimeout(findProblem()).catch(() => undefined);
      reader.close();
      await withTimeout(direct.close()).catch(() => {});
      await withTimeout(worker.call("close")).catch(() => {});
      worker.stop();
      return problem;
    },
  };
}

const bytesOf = async (file: string): Promise<number> => (await stat(file)).size;

/** The store of the Worker, which has it over its own engine, as calls to it. */
async function remoteStore(worker: StorageWorker): Promise<SqlStore> {
  const nouns: Record<string, Record<string, unknown>> = {};
  for (const method of (await worker.call("methods")) as string[]) {
    const [noun = "", name] = method.split(".");
    if (name === undefined) continue;
    (nouns[noun] ??= {})[name] = (...args: unknown[]) =>
      isReport(method) ? readReport(worker, method, args) : worker.call(method, ...args);
  }
  return nouns as Partial<SqlStore> as SqlStore;
}

/** The Worker reads each slice on demand, so a slow client delays only its own query. */
async function* readReport(worker: StorageWorker, method: string, args: unknown[]): AsyncGenerator<Uint8Array> {
  const id = await worker.call("openReport", method, ...args);
  try {
    for (;;) {
      const slice = await worker.call("readSlice", id);
      if (!(slice instanceof Uint8Array)) return;
      yield slice;
    }
  } finally {
    await worker.call("closeReport", id).catch(() => {});
  }
}

const withStorageErrors =
  <Args extends unknown[], Result>(find: (...args: Args) => Result) =>
  (...args: Args): Result => {
    try {
      return find(...args);
    } catch (error) {
      throw toStorageError(error);
    }
  };

const withTimeout = <T>(work: Promise<T>): Promise<T> =>
  within(callTimeoutMs, work, () => new StorageError("the database does not respond"));
