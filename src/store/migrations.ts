import { readMigrationFiles } from "drizzle-orm/migrator";
import { StorageError } from "./store.ts";

export interface Migration {
  /** When it was generated, epoch milliseconds: migrations are applied, and compared, in this order. */
  createdAt: number;
  hash: string;
  statements: string[];
}

/**
 * Called as a macro, while the program is bundled, so that the binary carries the SQL.
 * @param folder below `drizzle`; each engine has one
 */
export function readMigrations(folder: string): Migration[] {
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../drizzle/${folder}` }).map(
    ({ folderMillis, hash, sql }) => ({ createdAt: folderMillis, hash, statements: sql }),
  );
}

/**
 * @param last of those that were applied; 0 where none was
 * @throws StorageError where a newer program wrote the database
 */
export function pendingAfter(last: number, migrations: readonly Migration[]): readonly Migration[] {
  if (last > (migrations.at(-1)?.createdAt ?? 0)) {
    throw new StorageError(
      "the database was written by a newer version of this program; start that one, or restore a backup",
    );
  }
  return migrations.filter(({ createdAt }) => createdAt > last);
}
