import { Database } from "bun:sqlite";
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";

/** Whoever creates the file first owns the name: a backup never replaces anything. @throws where `target` exists */
export function claimBackup(target: string): void {
  closeSync(openSync(target, "wx", 0o600));
}

/**
 * Copies a live database while others write to it.
 * @param target claimed before; gone again where this throws
 */
export function backup(file: string, target: string): void {
  const partial = partialOf(target);
  try {
    copyInto(file, partial);
    renameSync(partial, target);
  } catch (error) {
    removeUnfinishedBackup(target);
    throw error;
  }
}

/** For a backup that was broken off. */
export function removeUnfinishedBackup(target: string): void {
  rmSync(partialOf(target), { force: true });
  rmSync(target, { force: true });
}

const partialOf = (target: string): string => `${target}.partial`;

function copyInto(file: string, partial: string): void {
  // One may be left of a backup that was killed.
  closeSync(openSync(partial, "w", 0o600));
  const client = new Database(file, { readwrite: true, create: false, strict: true });
  try {
    client.run("PRAGMA busy_timeout = 2000");
    client.run("VACUUM INTO ?", [partial]);
  } finally {
    client.close();
  }
  chmodSync(partial, 0o600);
  const descriptor = openSync(partial, "r+");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
