import { readMigrationFiles } from "drizzle-orm/migrator";

export interface Migration {
  /** When it was generated, epoch milliseconds: migrations are applied, and compared, in this order. */
  createdAt: number;
  hash: string;
  statements: string[];
}

/** Called as a macro, while the program is bundled, so that the binary carries the SQL. */
export function readMigrations(): Migration[] {
  return readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../drizzle/migrations` }).map(
    ({ folderMillis, hash, sql }) => ({ createdAt: folderMillis, hash, statements: sql }),
  );
}
