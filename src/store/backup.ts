import { Database } from "bun:sqlite";
import { randomUUID } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";

/**
 * Copies a live database while others write to it.
 * @throws where `target` exists, or cannot be written
 */
export function backup(file: string, target: string): void {
  // Whoever creates the file first owns the name: a backup never replaces anything.
  closeSync(openSync(target, "wx", 0o600));
  const partial = `${target}.${randomUUID()}.partial`;
  try {
    copyInto(file, partial);
    renameSync(partial, target);
  } catch (error) {
    rmSync(partial, { force: true });
    rmSync(target, { force: true });
    throw error;
  }
}

function copyInto(file: string, partial: string): void {
  closeSync(openSync(partial, "wx", 0o600));
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
