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
  /** Of the first one: what brings a database of builds before it to its tables, by what was last applied there. */
  formerSteps?: readonly FormerStep[] | undefined;
}

interface FormerStep {
  createdAt: number;
  statements: readonly string[];
}

/** Of the keys that created a response under one id, the first one. */
const insertOwners = `INSERT INTO owned (id_hash, key_id, backend, used_at)
  SELECT id_hash, key_id, backend, counted_at FROM (
    SELECT id_hash, key_id, backend, counted_at, row_number() OVER (
      PARTITION BY id_hash ORDER BY coalesce(made_at * 1000, counted_at), counted_at, key_id
    ) AS place FROM counted_responses WHERE creates > 0
  ) AS creators WHERE place = 1`;
const moveOwners = [
  "CREATE INDEX owned_key ON owned (key_id)",
  "CREATE INDEX owned_time ON owned (used_at)",
  insertOwners,
  "DELETE FROM counted_responses WHERE key_id = 0",
  ...["creates", "made_at", "estimated_tokens", "backend"].map(
    (name) => `ALTER TABLE counted_responses DROP COLUMN ${name}`,
  ),
];

/** The first step is where such databases may begin. They go when no database of a build before the first release is left. */
const formerSteps: Record<string, readonly FormerStep[]> = {
  migrations: [
    { createdAt: 1795657306453, statements: [] },
    { createdAt: 1795874588428, statements: ["DROP TABLE tokenless_hour"] },
    {
      createdAt: 1795889675374,
      statements: [
        `CREATE TABLE owned (id_hash text PRIMARY KEY NOT NULL, key_id integer NOT NULL, backend text, used_at integer NOT NULL)
          WITHOUT ROWID`,
        ...moveOwners,
      ],
    },
  ],
  "postgres-migrations": [
    { createdAt: 1795657307584, statements: [] },
    { createdAt: 1795874589491, statements: ["DROP TABLE tokenless_hour"] },
    {
      createdAt: 1795889675936,
      statements: [
        "CREATE TABLE owned (id_hash text PRIMARY KEY NOT NULL, key_id bigint NOT NULL, backend text, used_at bigint NOT NULL)",
        ...moveOwners,
      ],
    },
  ],
};

/** The last build that takes on any older database. */
const lastFormerBuild = "c4025785";
/** What the very first build applied. */
const formerInitials = [1795232680009, 1795237069246];

/**
 * Call it as a macro: the bundler then runs it, and the binary contains the SQL.
 * @param folder a folder in `drizzle`; each engine has one
 */
export function readMigrations(folder: string): Migration[] {
  const files = readMigrationFiles({ migrationsFolder: `${import.meta.dir}/../../../drizzle/${folder}` });
  return files.map(({ folderMillis, hash, sql }, n) => {
    const migration: Migration = { createdAt: folderMillis, hash, statements: sql };
    if (n === 0) migration.formerSteps = formerSteps[folder];
    return migration;
  });
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
 * @throws StorageError if a newer version of this program wrote the database, another program, or one that is too old
 */
export function listPending(applied: readonly number[], migrations: readonly Migration[]): readonly Migration[] {
  const [first, ...later] = migrations;
  if (first === undefined || applied.length === 0) return migrations;
  const [last, latest] = [Math.max(...applied), migrations.at(-1)?.createdAt ?? 0];
  if (!isOfFormerBuild(applied, migrations)) {
    if (last > latest && Math.min(...applied) < 0 && -Math.min(...applied) <= latest) return [];
    if (last > latest) throw newerDatabase();
    return migrations.filter(({ createdAt }) => createdAt > last);
  }
  if (!formerInitials.some((initial) => applied.includes(initial))) throw foreignDatabase();
  const { formerSteps: steps = [] } = first;
  const from = steps.findIndex(({ createdAt }) => createdAt === last);
  if (last > first.createdAt) throw newerDatabase();
  if (from === -1) {
    throw new StorageError(
      `the database is of a build that is too old; start one of commit ${lastFormerBuild} with it once, then this one`,
    );
  }
  return [{ ...first, statements: steps.slice(from + 1).flatMap(({ statements }) => statements) }, ...later];
}

export const isOfFormerBuild = (applied: readonly number[], [first]: readonly Migration[]): boolean =>
  first !== undefined && applied.length > 0 && !applied.includes(first.createdAt);

const newerDatabase = (): StorageError =>
  new StorageError(
    "the database was written by a newer version of this program; start that version or restore a backup (handbook: Go back after a bad upgrade)",
  );

export const foreignDatabase = (): StorageError => new StorageError("the database belongs to another program");
