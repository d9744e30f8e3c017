import type { Database } from "bun:sqlite";
import { accessSync, constants, lstatSync, renameSync, type Stats, statSync } from "node:fs";
import { dirname } from "node:path";
import type { WallClock } from "../../time/clock.ts";
import { toStorageError, StorageError } from "../storage-error.ts";
import { removeUnfinishedCopy } from "./copy-database.ts";
import { createFolder, giveToOwner, requireAccess, requireNotMoved, syncFolder } from "./database-file.ts";
import { lockDatabase } from "./lock-database.ts";
import { withWorker } from "./worker-client.ts";

interface Restore {
  /** The backup. */
  source: string;
  /** The database. */
  file: string;
  /** The old database's new name. */
  keptFile: string;
  clock: WallClock;
  /** Ends the restore while the database is still unchanged. */
  signal: AbortSignal;
}

/**
 * Replaces the database of a stopped server by a copy of a backup.
 * @returns whether there was an old database, which is now `keptFile`
 * @throws StorageError if a server runs, if the data is in PostgreSQL, or if the backup is damaged, of a newer version, or
 * of another program; the database is unchanged then
 */
export async function restoreDatabase(restore: Restore): Promise<boolean> {
  try {
    return await replaceByCopy(restore);
  } catch (error) {
    throw toStorageError(error);
  }
}

async function replaceByCopy(restore: Restore): Promise<boolean> {
  const { source, file, keptFile } = restore;
  requireBackup(source, file);
  requireNotMoved(file);
  createFolder(dirname(file));
  requireAccess(file);
  const restored = `${file}.restored`;
  const locked = lockIfReadable(file);
  try {
    await copyChecked(restore, restored);
    giveToOwner(restored, file);
  } catch (error) {
    removeUnfinishedCopy(restored);
    throw error;
  } finally {
    // The database is then one file, without a log.
    locked?.close();
  }
  // From here on nothing waits, so that no signal ends the program between two steps.
  return replace(file, restored, keptFile);
}

function requireBackup(source: string, file: string): void {
  const found = statOf(source);
  if (found === undefined) throw problemOf(source, "there is no such file");
  if (!found.isFile()) throw problemOf(source, "it is not a file");
  if (found.size === 0) throw problemOf(source, "it is empty; name a backup");
  const database = statSync(file, { throwIfNoEntry: false });
  if (database?.ino === found.ino && database.dev === found.dev) {
    throw problemOf(source, "it is the database itself; name a backup");
  }
}

function statOf(source: string): Stats | undefined {
  try {
    const found = statSync(source, { throwIfNoEntry: false });
    if (found !== undefined) accessSync(source, constants.R_OK);
    return found;
  } catch (error) {
    throw problemOf(source, `it cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

const problemOf = (source: string, problem: string): StorageError =>
  new StorageError(`${JSON.stringify(source)}: ${problem}`);

/** Checked and copied in a Worker, so that a signal can end it. */
async function copyChecked({ source, clock, signal }: Restore, target: string): Promise<void> {
  try {
    await withWorker(clock, signal, async (call) => {
      await call("inspect", source, "full");
      await call("copyBackup", source, target);
      signal.throwIfAborted();
    });
  } catch (error) {
    throw problemOf(source, toStorageError(error).message);
  }
}

/** @returns undefined if there is no database, or a damaged one. @throws StorageError if a server runs */
function lockIfReadable(file: string): Database | undefined {
  if (statSync(file, { throwIfNoEntry: false }) === undefined) return undefined;
  try {
    return lockDatabase(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    // A damaged database is one reason to restore a backup.
    if (code.startsWith("SQLITE_NOTADB") || code.startsWith("SQLITE_CORRUPT")) return undefined;
    throw error;
  }
}

/**
 * The database goes first and its log follows: should this end between two steps, no server starts without the log that
 * belongs to a database, nor with another's.
 */
function replace(file: string, restored: string, keptFile: string): boolean {
  const moved = ["", "-wal", "-shm"].map((suffix) => moveIfThere(file + suffix, keptFile + suffix));
  renameSync(restored, file);
  syncFolder(dirname(file));
  return moved[0] === true;
}

function moveIfThere(from: string, to: string): boolean {
  if (lstatSync(from, { throwIfNoEntry: false }) === undefined) return false;
  renameSync(from, to);
  return true;
}
