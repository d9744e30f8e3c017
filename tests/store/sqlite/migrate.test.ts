import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/import-table.ts";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { newOwners, oldResponses, stillCounted } from "../old-responses.ts";
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

/** A database of a build before the one migration. @param from how many of the steps after the first it has applied */
async function formerDatabase(steps = 0) {
  const client = new Database(":memory:", { strict: true });
  client.run(await Bun.file(`${repositoryRoot}/tests/fixtures/databases/drop-admissions.sqlite.sql`).text());
  for (const { createdAt, statements } of migrations[0]?.formerSteps?.slice(1, 1 + steps) ?? []) {
    for (const statement of statements) client.run(statement);
    client.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('', ?)", [createdAt]);
  }
  return client;
}

function schemaOf(client: Database) {
  const all = (query: string, name: string) => client.query(query).all(name);
  const tables = client.query<{ name: string; wr: number }, []>("PRAGMA table_list").all();
  return {
    tables: tables
      .map(({ name, wr }) => ({
        name,
        wr,
        columns: all(`SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info(?) ORDER BY name`, name),
        indexes: all('SELECT name, "unique", partial FROM pragma_index_list(?) ORDER BY name', name),
      }))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    triggers: client.query("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name").all(),
  };
}

test.each(migrations[0]?.formerSteps?.map((_, n) => n) ?? [])(
  "a database of a build before the first release, %d steps later, gets the tables of a new one and keeps its rows",
  async (steps) => {
    using client = await formerDatabase(steps);
    using fresh = emptyDatabase();
    migrate(client, migrations);
    expect(schemaOf(client)).toEqual(schemaOf(fresh));
    expect(client.query("SELECT name, input_tokens FROM keys ORDER BY id").values()).toEqual([
      ["plain", 38],
      ["limited", 38],
    ]);
    client.run("UPDATE usage_model_day SET input_tokens = 1000 WHERE key_id = 1 AND model = 'm'");
    const months = "SELECT input_tokens FROM usage_model_month WHERE key_id = 1 ORDER BY model";
    expect(client.query(months).values()).toEqual([[11], [1000]]);
    expect(
      client
        .query(
          "INSERT INTO keys (key, name, is_active, created_at, request_count, input_tokens, output_tokens) VALUES ('k', 'n', 1, 1, 0, 0, 0) RETURNING id",
        )
        .values(),
    ).toEqual([[3]]);
  },
);

test("the first key that created a response owns it, and what was counted stays counted", async () => {
  using client = await formerDatabase();
  client.run("DELETE FROM counted_responses");
  for (const row of oldResponses) client.run(`INSERT INTO counted_responses VALUES (${row})`);
  migrate(client, migrations);
  expect(client.query("SELECT * FROM owned ORDER BY id_hash").values()).toEqual(newOwners);
  expect(client.query("SELECT * FROM counted_responses ORDER BY id_hash, key_id").values()).toEqual(stillCounted);
});

test("an older database is refused with the build to go through", async () => {
  using client = await formerDatabase();
  client.run("DELETE FROM __drizzle_migrations WHERE created_at >= 1795657306453");
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
