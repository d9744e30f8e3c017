import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/import-table.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { readMigrations } from "../../../src/store/schema/migrations.ts";
import postgresConfig from "../../../drizzle/drizzle.postgres.config.ts";
import sqliteConfig from "../../../drizzle/drizzle.config.ts";

const migrations = readMigrations("migrations");
const later = (n: number, ...statements: string[]) => ({
  createdAt: (migrations.at(-1)?.createdAt ?? 0) + n,
  hash: `later ${n}`,
  statements,
});

function emptyDatabase() {
  const client = new Database(":memory:", { strict: true });
  migrate(client, migrations);
  return client;
}

test("the tables that are written most are ordered by their primary key", () => {
  using client = emptyDatabase();
  const tables = client.query<{ name: string; wr: number }, []>("PRAGMA table_list").all();
  const withoutRowid = tables.filter(({ wr }) => wr === 1).map(({ name }) => name);
  expect(withoutRowid.toSorted()).toEqual([
    "counted_responses",
    "gpu_hour",
    "gpu_minute",
    "key_leases",
    "key_refusals",
    "latency_hour",
    "latency_minute",
    "lease_seconds",
    "outcome_hour",
    "outcome_minute",
    "owned",
    "usage_day",
    "usage_hour",
    "usage_minute",
    "usage_model_day",
    "usage_model_hour",
    "usage_model_month",
  ]);
});

test("a database of a build before the first migration is refused with the build to go through", () => {
  using client = new Database(":memory:", { strict: true });
  client.run("CREATE TABLE __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT NOT NULL, created_at INTEGER)");
  client.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', 1795237069246), ('', 1795889675374)");
  expect(() => migrate(client, migrations)).toThrow(/^the database is of a build that is too old; start one of commit/);
});

test.each([
  ["migrations", "sqlite"],
  ["postgres-migrations", "postgres"],
])("triggers and functions change with a migration: %s", (folder, engine) => {
  const hash = new Bun.CryptoHasher("sha256");
  const files = [...new Bun.Glob(`src/store/**/*.${engine}.sql`).scanSync(repositoryRoot)].toSorted();
  for (const file of files) hash.update(readFileSync(`${repositoryRoot}/${file}`));
  const [firstLine] = readMigrations(folder).at(-1)?.statements[0]?.split("\n") ?? [];
  expect(firstLine).toBe(`-- Triggers and functions: ${hash.digest("hex").slice(0, 16)}`);
});

test("the next migration is made from files that exist: drizzle-kit would drop the tables of one that does not", () => {
  const files = [sqliteConfig, postgresConfig].flatMap(({ schema = [] }) => schema);
  expect(files.filter((file) => !existsSync(join(repositoryRoot, file)))).toEqual([]);
});

test("a migration is applied once", () => {
  using client = emptyDatabase();
  const steps = [...migrations, later(1, "CREATE TABLE extra (id INTEGER)", "INSERT INTO extra VALUES (1)")];
  migrate(client, steps);
  migrate(client, steps);
  expect(client.query("SELECT id FROM extra").all()).toEqual([{ id: 1 }]);
});

test("a migration that fails changes nothing", () => {
  using client = emptyDatabase();
  const broken = [...migrations, later(1, "CREATE TABLE one (id INTEGER)"), later(2, "INSERT INTO nowhere VALUES (1)")];
  expect(() => migrate(client, broken)).toThrow("nowhere");
  expect(client.query("SELECT name FROM sqlite_schema WHERE name = 'one'").all()).toEqual([]);
  expect(() => migrate(client, migrations)).not.toThrow();
});

test("recreating a table neither reuses old ids nor deletes the rows that refer to it", () => {
  using client = new Database(":memory:", { strict: true });
  client.run("PRAGMA foreign_keys = ON");
  const first = {
    createdAt: 1,
    hash: "1",
    statements: [
      "CREATE TABLE parent (id INTEGER PRIMARY KEY AUTOINCREMENT)",
      "CREATE TABLE child (parent_id INTEGER REFERENCES parent(id) ON DELETE CASCADE)",
    ],
  };
  migrate(client, [first], []);
  client.run("INSERT INTO parent VALUES (1), (2), (3)");
  client.run("INSERT INTO child VALUES (1)");
  client.run("DELETE FROM parent WHERE id = 3");
  const recreated = {
    createdAt: 2,
    hash: "2",
    statements: [
      "CREATE TABLE __new_parent (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT)",
      "INSERT INTO __new_parent (id) SELECT id FROM parent",
      "DROP TABLE parent",
      "ALTER TABLE __new_parent RENAME TO parent",
    ],
  };
  migrate(client, [first, recreated], []);
  expect(client.query("INSERT INTO parent (name) VALUES ('new') RETURNING id").get()).toEqual({ id: 4 });
  expect(client.query("SELECT parent_id FROM child").all()).toEqual([{ parent_id: 1 }]);
});

test("a migration that breaks a reference is refused", () => {
  using client = new Database(":memory:", { strict: true });
  const broken = {
    createdAt: 1,
    hash: "1",
    statements: [
      "CREATE TABLE p (id INTEGER PRIMARY KEY)",
      "CREATE TABLE c (p REFERENCES p(id))",
      "INSERT INTO c VALUES (9)",
    ],
  };
  expect(() => migrate(client, [broken], [])).toThrow("rows would refer to rows that do not exist");
});

test("a build opens what a newer one only added to, and refuses what it took something away from", () => {
  using client = emptyDatabase();
  const added = [...migrations, later(1, "CREATE TABLE extra (id INTEGER)", "DROP INDEX audit_time")];
  migrate(client, added);
  migrate(client, migrations);
  const taken = [...added, later(2, "ALTER TABLE extra RENAME TO other")];
  migrate(client, taken);
  expect(() => migrate(client, added)).toThrow("written by a newer version");
  migrate(client, [...taken, later(3, "ALTER TABLE audit ADD COLUMN more text")]);
  // What was taken away stays away.
  expect(() => migrate(client, added)).toThrow("written by a newer version");
});
