import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { migrate } from "../../../src/store/sqlite/migrate.ts";
import { newOwners, oldResponses, stillCounted } from "../old-responses.ts";
import { readMigrations } from "../../../src/store/schema/migrations.ts";

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

test("the first key that created a response owns it, and what was counted stays counted", () => {
  using client = new Database(":memory:", { strict: true });
  const last = migrations.findIndex(({ statements }) => statements.some((one) => one.includes("`owned`")));
  migrate(client, migrations.slice(0, last));
  for (const row of oldResponses) client.run(`INSERT INTO counted_responses VALUES (${row})`);
  migrate(client, migrations);
  expect(client.query("SELECT * FROM owned ORDER BY id_hash").values()).toEqual(newOwners);
  expect(client.query("SELECT * FROM counted_responses ORDER BY id_hash, key_id").values()).toEqual(stillCounted);
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
  migrate(client, [first]);
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
  migrate(client, [first, recreated]);
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
  expect(() => migrate(client, [broken])).toThrow("rows would refer to rows that do not exist");
});
