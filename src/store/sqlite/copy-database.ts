import { Database } from "bun:sqlite";
import { closeSync, constants, fchmodSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { StorageError } from "../storage-error.ts";
import { openAnew } from "./database-file.ts";
import { findDamage } from "./inspect-database.ts";

const busyTimeoutMs = 2000;

/**
 * Copies a live database while other connections write to it, and reads the copy back. Runs in a Worker, because it blocks
 * until the copy is on disk.
 * @param target removed if the copy fails
 * @param isInUse false for a copy of a backup that was read before, and need not be writable
 */
export function copyDatabase(file: string, target: string, { isInUse }: { isInUse: boolean }): void {
  const partial = partialOf(target);
  try {
    copyInto(file, partial, isInUse);
    if (isInUse) requireReadable(partial);
    renameSync(partial, target);
  } catch (error) {
    removeUnfinishedCopy(target);
    throw error;
  }
}

/** Also for a copy whose Worker was terminated. */
export function removeUnfinishedCopy(target: string): void {
  rmSync(partialOf(target), { force: true });
  rmSync(target, { force: true });
}

const partialOf = (target: string): string => `${target}.partial`;

function requireReadable(copy: string): void {
  // Not read-only: SQLite (3.54) then leaves the constraints of rows out.
  using client = new Database(copy, { readwrite: true, create: false });
  const damage = findDamage(client, "quick");
  if (damage !== undefined) throw new StorageError(`the copy is damaged, and deleted; check the database (${damage})`);
}

function copyInto(file: string, partial: string, isInUse: boolean): void {
  // A backup that was killed may have left one.
  closeSync(openAnew(partial));
  // A connection that may write removes the log when it closes last; a backup may be in a folder that is read-only.
  const access = isInUse ? { readwrite: true, create: false } : { readonly: true };
  using client = new Database(file, { ...access, strict: true });
  client.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  // So that the copy gives freed space back once it is restored, also if the database does not (see release-space.ts).
  if (isInUse) client.run("PRAGMA auto_vacuum = INCREMENTAL");
  client.run("VACUUM INTO ?", [partial]);
  const descriptor = openSync(partial, constants.O_RDWR | constants.O_NOFOLLOW);
  try {
    fchmodSync(descriptor, 0o600);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
