import { closeSync, existsSync, mkdirSync, openSync, statSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { StorageError } from "../store.ts";

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
      `${basename(file)} ${problem}; restore a backup, or delete ${basename(markerOf(file))} to start with no data`,
    );
  }
  return bytes;
}

/** To be called when the database has its tables. */
export function markCreated(file: string): void {
  const text = `${basename(file)} was created. If it is lost, restore a backup, or delete this file to start with no data.\n`;
  unlessExists(() => writeFileSync(markerOf(file), text, { flag: "wx", mode: 0o600 }));
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

function unlessExists(create: () => void): void {
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
