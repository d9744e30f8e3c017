import { readMigrationFiles } from "drizzle-orm/migrator";
import { StorageError } from "./store.ts";

export interface Migration {
  /** When it was generated, epoch milliseconds. Migrations are applied in this order. */
  createdAt: number;
  hash: string;
  statements: string[];
}

/**
 * Call it as a macro: the bundler then runs it, and the binary contains the SQL.
 * @param folder a folder in `drizzle`; each engine has one
 */
export function readMigrations(folder: string): Migration[] {
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../drizzle/${folder}` }).map(
    ({ folderMillis, hash, sql }) => ({ createdAt: folderMillis, hash, statements: sql }),
  );
}

/**
 * @param last `createdAt` of the last applied migration; 0 if there is none
 * @throws StorageError if a newer version of this program wrote the database
 */
export function listPending(last: number, migrations: readonly Migration[]): readonly Migration[] {
  if (last > (migrations.at(-1)?.createdAt ?? 0)) {
    throw new StorageError(
      "the database was written by a newer version of this program; start that version or restore a backup",
    );
  }
  return migrations.filter(({ createdAt }) => createdAt > last);
}
