import { readMigrationFiles } from "drizzle-orm/migrator";
import { StorageError } from "../storage-error.ts";

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
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../../drizzle/${folder}` }).map(
    ({ folderMillis, hash, sql }) => ({ createdAt: folderMillis, hash, statements: sql }),
  );
}

/**
 * @param applied `createdAt` of the applied migrations
 * @throws StorageError if a newer version of this program wrote the database, or another program
 */
export function listPending(applied: readonly number[], migrations: readonly Migration[]): readonly Migration[] {
  const [first] = migrations;
  if (first !== undefined && applied.length > 0 && !applied.includes(first.createdAt)) throw foreignDatabase();
  const last = Math.max(0, ...applied);
  if (last > (migrations.at(-1)?.createdAt ?? 0)) {
    throw new StorageError(
      "the database was written by a newer version of this program; start that version or restore a backup (handbook: Go back after a bad upgrade)",
    );
  }
  return migrations.filter(({ createdAt }) => createdAt > last);
}

export const foreignDatabase = (): StorageError => new StorageError("the database belongs to another program");
