import { closeSync, openSync, readdirSync, rmSync, statSync } from "node:fs";
import type { WallClock } from "../../time/clock.ts";
import { toStorageError, StorageError } from "../storage-error.ts";
import { removeUnfinishedCopy } from "./copy-database.ts";
import { startWorker } from "./worker-client.ts";
import { join } from "node:path";

export interface Backup {
  /** The database. */
  file: string;
  /** The new file. */
  target: string;
  clock: WallClock;
  /** Stops the backup and removes what it has written. */
  signal?: AbortSignal;
}

/**
 * Copies a database that may be in use, in a Worker of its own so that the caller's thread and its storage Worker go on.
 * @throws StorageError if `target` exists or cannot be written, or if the signal aborts
 */
export async function backupDatabase({ file, target, clock, signal }: Backup): Promise<void> {
  createTarget(target);
  const worker = startWorker(clock);
  const stop = (): void => worker.stop();
  signal?.addEventListener("abort", stop);
  try {
    await worker.call("backup", file, target);
  } catch (error) {
    if (signal?.aborted === true) removeUnfinishedCopy(target);
    throw error;
  } finally {
    signal?.removeEventListener("abort", stop);
    worker.stop();
  }
}

/** Fails if the file exists: a backup never replaces a file, and of two backups to one name only one succeeds. */
function createTarget(target: string): void {
  try {
    closeSync(openSync(target, "wx", 0o600));
  } catch (error) {
    const code = String((error as NodeJS.ErrnoException).code);
    const problem = problemsOfFolder[code];
    throw problem === undefined ? toStorageError(error) : new StorageError(`${problem} (${code})`, { cause: error });
  }
}

/** What else would be said of the data folder. */
const problemsOfFolder: Readonly<Record<string, string>> = {
  EACCES: "its folder is not writable; check its permissions",
  EROFS: "its folder is on a read-only disk",
  ENOTDIR: "its folder is not a folder",
};

/** `20261121T094500Z`: UTC, so that names sort by time and no hour comes twice. */
export const timestampOf = (ms: number): string => new Date(ms).toISOString().replaceAll(/[-:]|\.\d+/g, "");

const namePattern = /^tollgate-\d{8}T\d{6}Z\.db$/;
/** Left by a backup that was killed. Younger ones may still be written. */
const unfinishedPattern = /^tollgate-\d{8}T\d{6}Z\.db(\.partial)?$/;
const unfinishedAfterMs = 24 * 60 * 60 * 1000;

/**
 * Makes a backup that is named after the time, and then deletes the oldest of those that this function made.
 * @returns the new file
 * @throws StorageError if the backup failed, none is deleted then; or if one cannot be deleted
 */
export async function addBackup({
  folder,
  keep,
  ...backup
}: Omit<Backup, "target"> & {
  /** Exists. */
  folder: string;
  /** How many backups the folder keeps. */
  keep: number;
}): Promise<string> {
  const name = await backUpAt(backup.clock(), folder, backup);
  try {
    deleteUnfinished(folder, backup.clock);
    const older = listFinished(folder).filter((other) => other !== name);
    for (const one of older.toSorted().slice(0, Math.max(0, older.length - (keep - 1)))) rmSync(join(folder, one));
  } catch (error) {
    throw toStorageError(error);
  }
  return join(folder, name);
}

/** Names it after the next second if another backup has the name. @returns the name */
async function backUpAt(now: number, folder: string, backup: Omit<Backup, "target">): Promise<string> {
  const name = `tollgate-${timestampOf(now)}.db`;
  try {
    await backupDatabase({ ...backup, target: join(folder, name) });
    return name;
  } catch (error) {
    if (!(error instanceof Error) || !isTaken(error)) throw error;
    return await backUpAt(now + 1000, folder, backup);
  }
}

const isTaken = ({ cause }: { cause?: unknown }): boolean =>
  (cause as NodeJS.ErrnoException | undefined)?.code === "EEXIST";

const listFinished = (folder: string): string[] =>
  readdirSync(folder).filter((name) => namePattern.test(name) && bytesOf(join(folder, name)) > 0);

function deleteUnfinished(folder: string, clock: WallClock): void {
  for (const name of readdirSync(folder).filter((one) => unfinishedPattern.test(one))) {
    const file = join(folder, name);
    const isUnfinished = name.endsWith(".partial") || bytesOf(file) === 0;
    const writtenAt = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity;
    if (isUnfinished && writtenAt < clock() - unfinishedAfterMs) rmSync(file, { force: true });
  }
}

const bytesOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
