import { closeSync, openSync } from "node:fs";
import type { WallClock } from "../../time/clock.ts";
import { toStorageError, StorageError } from "../storage-error.ts";
import { removeUnfinishedCopy } from "./copy-database.ts";
import { startWorker } from "./worker-client.ts";

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
