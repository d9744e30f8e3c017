import { Database } from "bun:sqlite";
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";

const busyTimeoutMs = 2000;

/**
 * Copies a live database while other connections write to it. Runs in a Worker, because it blocks until the copy is on
 * disk.
 * @param target exists and is empty; removed if the copy fails
 */
export function copyDatabase(file: string, target: string): void {
  const partial = partialOf(target);
  try {
    copyInto(file, partial);
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

function copyInto(file: string, partial: string): void {
  // A backup that was killed may have left one.
  closeSync(openSync(partial, "w", 0o600));
  const client = new Database(file, { readwrite: true, create: false, strict: true });
  try {
    client.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
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
