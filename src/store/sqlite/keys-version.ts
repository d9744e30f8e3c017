import { closeSync, constants, fstatSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { giveToOwner, unlessExists } from "./database-file.ts";

const { O_APPEND, O_NOFOLLOW, O_WRONLY } = constants;

/**
 * Maps a file beside the database.
 * @returns the version of all keys: a number that rises with each change of one, in memory that all processes on a database
 * share; undefined if it cannot be mapped: changes are then not noticed
 */
export function openKeysVersion(databaseFile: string): Int32Array | undefined {
  const file = `${databaseFile}-keys`;
  try {
    unlessExists(() => {
      closeSync(openSync(file, "wx", 0o600));
      giveToOwner(file, databaseFile);
    });
    const descriptor = openSync(file, O_WRONLY | O_APPEND | O_NOFOLLOW);
    try {
      occupy(descriptor);
    } finally {
      closeSync(descriptor);
    }
    return new Int32Array(Bun.mmap(file, { shared: true }).buffer, 0, 1);
  } catch {
    return undefined;
  }
}

/**
 * Makes room for the number on the disk: on a full one, the first write to memory that is mapped to a hole in a file ends
 * the process. Appends after the number, because another process may have raised it.
 */
function occupy(descriptor: number): void {
  const { size } = fstatSync(descriptor);
  if (size > numberBytes) return;
  if (size < numberBytes) ftruncateSync(descriptor, numberBytes);
  writeSync(descriptor, new Uint8Array(numberBytes));
}

const numberBytes = Int32Array.BYTES_PER_ELEMENT;
