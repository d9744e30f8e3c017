import { closeSync, ftruncateSync, openSync } from "node:fs";

/** A number that rises with each change of a key, in memory that all processes on one database share. */
export interface KeyGeneration {
  read(): number;
  raise(): void;
}

/** Maps a file beside the database. @returns undefined if it cannot be mapped: changes are then not noticed */
export function openKeyGeneration(databaseFile: string): KeyGeneration | undefined {
  const file = `${databaseFile}-keys`;
  try {
    const descriptor = openSync(file, "a", 0o600);
    ftruncateSync(descriptor, Int32Array.BYTES_PER_ELEMENT);
    closeSync(descriptor);
    const cell = new Int32Array(Bun.mmap(file, { shared: true }).buffer);
    return { read: () => Atomics.load(cell, 0), raise: () => void Atomics.add(cell, 0, 1) };
  } catch {
    return undefined;
  }
}
