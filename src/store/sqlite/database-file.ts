import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fsyncSync,
  lchownSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { timestampOf } from "../../time/seoul.ts";
import { StorageError, toStorageError } from "../storage-error.ts";

/** Exists beside a database that was created, so that one that has disappeared is not taken for a first start. */
const markerOf = (file: string): string => `${file}-created`;

/**
 * Ensures that there is a database file, at first an empty one. Only its owner may read it, since it holds API keys in
 * plain text. SQLite gives its log files the same mode.
 * @throws StorageError if there was a database before, and it is gone
 */
export function ensureDatabaseFile(file: string): void {
  createFolder(dirname(file));
  if (requireNotLost(file) === undefined) unlessExists(() => closeSync(openSync(file, "wx", 0o600)));
}

/**
 * @returns the size of the file; undefined if there is none, and there was none before
 * @throws StorageError if there was a database before, and it is gone
 */
export function requireNotLost(file: string): number | undefined {
  // In this order: while another process creates the database, the file has its content before the marker exists.
  const wasCreated = existsSync(markerOf(file));
  const bytes = statSync(file, { throwIfNoEntry: false })?.size;
  if (wasCreated && (bytes ?? 0) === 0) {
    const problem = bytes === undefined ? "was deleted" : "is empty";
    throw new StorageError(
      `${basename(file)} ${problem}; restore a backup, or delete ${basename(markerOf(file))} to start with no data (handbook: Starting over)`,
    );
  }
  return bytes;
}

/** What root leaves beside a database, or in its place, must be one that the server's user can open. No link is followed. */
export function giveToOwner(left: string, file: string): void {
  if (process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(file, { throwIfNoEntry: false }) ?? statSync(dirname(file));
  lchownSync(left, uid, gid);
}

/** To be called when the database has its tables. */
export function markCreated(file: string): void {
  const text = `${basename(file)} was created. If it is lost, restore a backup, or delete this file to start with no data.\n`;
  unlessExists(() => writeFileSync(markerOf(file), text, { flag: "wx", mode: 0o600 }));
}

/** Exists beside a database whose data is in PostgreSQL now. Its text is the error of those who would use it all the same. */
export const movedMarkerOf = (file: string): string => `${file}-moved`;

/** @throws StorageError if the data was moved to PostgreSQL: a server would count into a copy that is not read */
export function requireNotMoved(file: string): void {
  const marker = movedMarkerOf(file);
  if (existsSync(marker)) throw new StorageError(readFileSync(marker, "utf8").trim());
}

/** Empty, in place of what an earlier try left. Links are replaced, not followed: this may be root in another's folder. */
export function openAnew(file: string): number {
  rmSync(file, { force: true });
  return openSync(file, "wx", 0o600);
}

/** On disk when it returns, and whole at any moment. */
export function markMoved(file: string, movedAt: number): void {
  const marker = movedMarkerOf(file);
  const partial = `${marker}.partial`;
  const text = `${basename(file)} was moved to PostgreSQL on ${timestampOf(movedAt)}; set DATABASE_URL, or delete ${basename(marker)} to use this folder again (handbook: Undo the move)\n`;
  const descriptor = openAnew(partial);
  try {
    // The server's user reads what root may have written.
    fchmodSync(descriptor, 0o644);
    writeSync(descriptor, text);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  renameSync(partial, marker);
  syncFolder(dirname(file));
}

/** On disk when it returns. */
export function unmarkMoved(file: string): void {
  rmSync(movedMarkerOf(file), { force: true });
  syncFolder(dirname(file));
}

/** Puts on disk which files the folder has. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Only for its owner, if it is new. */
export function createFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    throw new StorageError("the data folder is not a folder", { cause: error });
  }
}

/** @throws StorageError that names what this user cannot write: the folder, the database, or one of its log files */
export function requireAccess(file: string): void {
  const { R_OK, W_OK } = constants;
  for (const path of [dirname(file), file, logOf(file), `${file}-shm`]) {
    try {
      accessSync(path, R_OK | W_OK);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT") continue;
      if (code !== "EACCES" || path === dirname(file)) throw toStorageError(error);
      throw new StorageError(`this user cannot read and write ${basename(path)}; check its owner and mode (${code})`);
    }
  }
}

export function unlessExists(create: () => void): void {
  try {
    create();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** @returns what has happened to the file since it had this inode; undefined if nothing has */
export async function findFileProblem(file: string, inode: number): Promise<string | undefined> {
  const found = await stat(file).catch(() => undefined);
  if (found === undefined || found.ino !== inode) return "the database file was moved, deleted or replaced";
  return found.size === 0 ? "the database file was emptied" : undefined;
}

/** SQLite's write-ahead log, which holds the latest commits. */
export const logOf = (file: string): string => `${file}-wal`;

/**
 * What is committed to a log that was deleted is found by those who have it open, and lost when they are killed.
 * @param inode of the log when the database was opened; undefined if there was no room for one
 * @returns what has happened to it since; undefined if nothing has
 */
export async function findProblemOfLog(file: string, inode: number | undefined): Promise<string | undefined> {
  const log = logOf(file);
  const found = await stat(log).catch(() => undefined);
  return inode === undefined || found?.ino === inode ? undefined : `${basename(log)} was moved, deleted or replaced`;
}
