import { Database } from "bun:sqlite";
import { isBusy } from "./engine.ts";
import { StorageError } from "../storage-error.ts";

/**
 * Opens the database as the only connection until it is closed. Every server holds a shared lock on it while it runs.
 * @throws StorageError if a server runs; errors of SQLite as they are
 */
export function lockDatabase(file: string): Database {
  const client = new Database(file, { readwrite: true, create: false, strict: true });
  try {
    client.run("PRAGMA busy_timeout = 1000");
    // In WAL mode, only this makes the lock exclude readers. It stays when the transaction ends (SQLite 3.54).
    client.run("PRAGMA locking_mode = EXCLUSIVE");
    client.run("BEGIN EXCLUSIVE");
    client.run("COMMIT");
    return client;
  } catch (error) {
    client.close();
    if (!isBusy(error)) throw error;
    throw new StorageError("a server uses the database; stop it first", { cause: error });
  }
}
