// The one migration of each engine has all tables. Later ones change them, and one may drop only what no build of the release
// before writes. Triggers and functions are SQL files beside what uses them (`*.sqlite.sql`, `*.postgres.sql`): they are
// written again when migrations are applied, so a change of them needs one, which may be empty otherwise.
import { readMigrationFiles } from "drizzle-orm/migrator";
import { StorageError } from "../storage-error.ts";

export interface Migration {
  /** When it was generated, epoch milliseconds. Migrations are applied in this order. */
  createdAt: number;
  hash: string;
  statements: readonly string[];
}

/** The last build that takes on a database of a build before the first migration. */
const lastFormerBuild = "b20a2f4e";
/** What the very first build applied. */
const formerInitials = [1795232680009, 1795237069246];

/**
 * Call it as a macro: the bundler then runs it, and the binary contains the SQL.
 * @param folder a folder in `drizzle`; each engine has one
 */
export function readMigrations(folder: string): Migration[] {
  const files = readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../../drizzle/${folder}` });
  return files.map(({ folderMillis, hash, sql }) => ({ createdAt: folderMillis, hash, statements: sql }));
}

/** When the last migration that this build knows was generated. */
export const latestMigration = (folder: string): number => readMigrations(folder).at(-1)?.createdAt ?? 0;

/** Whether it takes away what earlier builds write: none may run beside it, nor open the database any more. */
export const takesAway = ({ statements }: Migration): boolean =>
  statements.some((one) => /\bRENAME\b|\bDROP (?!INDEX|NOT NULL)/i.test(one));

/** The least build that may write is recorded beside the migrations, as the negative of its latest one. */
export const leastWriter = (migrations: readonly Migration[]): number =>
  -((migrations.slice(1).findLast(takesAway) ?? migrations[0])?.createdAt ?? 0);

/**
 * @param applied `createdAt` of the applied migrations, and what `leastWriter` says of the newest build that applied some
 * @param hasTables which are another program's if none is applied
 * @throws StorageError if a newer version of this program wrote the database, another program, or one that is too old
 */
export function listPending(
  applied: readonly number[],
  migrations: readonly Migration[],
  hasTables = false,
): readonly Migration[] {
  const [first] = migrations;
  if (applied.length === 0 && hasTables) throw foreignDatabase();
  if (first === undefined || applied.length === 0) return migrations;
  const [last, latest] = [Math.max(...applied), migrations.at(-1)?.createdAt ?? 0];
  if (applied.includes(first.createdAt)) {
    if (last > latest && Math.min(...applied) < 0 && -Math.min(...applied) <= latest) return [];
    if (last > latest) throw newerDatabase();
    return migrations.filter(({ createdAt }) => createdAt > last);
  }
  if (!formerInitials.some((initial) => applied.includes(initial))) throw foreignDatabase();
  throw new StorageError(
    `the database is of a build that is too old; start one of commit ${lastFormerBuild} with it once, then this one`,
  );
}

const newerDatabase = (): StorageError =>
  new StorageError(
    "the database was written by a newer version of this program; start that version or restore a backup (handbook: Go back after a bad upgrade)",
  );

const foreignDatabase = (): StorageError => new StorageError("the database belongs to another program");
