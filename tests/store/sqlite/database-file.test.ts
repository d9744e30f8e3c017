import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import {
  chmodSync,
  lstatSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { copyDatabase } from "../../../src/store/sqlite/copy-database.ts";
import { markMoved } from "../../../src/store/sqlite/database-file.ts";
import { openKeysVersion } from "../../../src/store/sqlite/keys-version.ts";
import { openSqliteStore } from "../../../src/store/sqlite/open.ts";
import { createTempFolder, type TempFolder } from "../../support/temp-folder.ts";
import { createKeys, memoryLog } from "../test-store.ts";

const open = ({ path }: TempFolder) => openSqliteStore({ dataDir: path, clock: Date.now, log: memoryLog().log });

/** A database with a key, closed. */
async function createDatabase(folder: TempFolder): Promise<string> {
  const store = await open(folder);
  await createKeys(store, ["a"]);
  await store.close();
  return folder.file("tollgate.db");
}

function run(file: string, ...statements: string[]): void {
  using client = new Database(file);
  for (const statement of statements) client.run(statement);
}

const createTables = "CREATE TABLE notes (text TEXT)";
const createMigrations = "CREATE TABLE __drizzle_migrations (id INTEGER PRIMARY KEY, hash TEXT, created_at INTEGER)";

test.each<[string, (file: string) => void, string]>([
  ["was deleted", (file) => rmSync(file), "tollgate.db was deleted; restore a backup, or delete tollgate.db-created"],
  [
    "was emptied",
    (file) => truncateSync(file),
    "tollgate.db is empty; restore a backup, or delete tollgate.db-created",
  ],
  ["was replaced by that of another program", (file) => (rmSync(file), run(file, createTables)), "another program"],
  [
    "was replaced by that of another program with the same tool for migrations",
    (file) => (rmSync(file), run(file, createMigrations, "INSERT INTO __drizzle_migrations VALUES (1, 'x', 5)")),
    "the database belongs to another program",
  ],
  ["has lost a table", (file) => run(file, "DROP TABLE usage_day"), "the table usage_day is missing; restore a backup"],
  [
    "refuses to be written",
    (file) => run(file, "CREATE TRIGGER t BEFORE INSERT ON settings BEGIN SELECT raise(ABORT, 'read-only today'); END"),
    "read-only today",
  ],
])("a database that %s is refused, and nothing is created in its place", async (_, damage, reason) => {
  using folder = createTempFolder();
  const file = await createDatabase(folder);
  damage(file);
  const before = Bun.file(file).size;
  await expect(open(folder)).rejects.toThrow(reason);
  expect(Bun.file(file).size).toBe(before);
});

test("a folder starts anew once the database and the file that remembers it are deleted", async () => {
  using folder = createTempFolder();
  rmSync(await createDatabase(folder));
  rmSync(folder.file("tollgate.db-created"));
  const store = await open(folder);
  expect(await store.keys.list()).toEqual([]);
  await store.close();
});

test("an empty file is a database to be created, unless there was one", async () => {
  using folder = createTempFolder();
  writeFileSync(folder.file("tollgate.db"), "");
  await createDatabase(folder);
});

test("a database of an older version, which has left no such file, is opened and remembered", async () => {
  using folder = createTempFolder();
  const file = await createDatabase(folder);
  rmSync(folder.file("tollgate.db-created"));
  await (await open(folder)).close();
  rmSync(file);
  await expect(open(folder)).rejects.toThrow("was deleted");
});

test.each<[string, string, (file: string) => unknown]>([
  ["move-to", "-moved.partial", (file) => markMoved(file, Date.now())],
  ["backup", ".copy.partial", (file) => copyDatabase(file, `${file}.copy`, { isInUse: true })],
  ["restore", ".restored.partial", (file) => copyDatabase(file, `${file}.restored`, { isInUse: false })],
  ["a server of root's", "-keys", (file) => openKeysVersion(file)?.fill(1)],
])("%s writes nothing through a link that the service's user left as tollgate.db%s", async (_, suffix, write) => {
  using folder = createTempFolder();
  const file = await createDatabase(folder);
  const other = folder.file("other");
  writeFileSync(other, "");
  chmodSync(other, 0o640);
  rmSync(file + suffix, { force: true });
  symlinkSync(other, file + suffix);
  write(file);
  expect([readFileSync(other, "utf8"), statSync(other).mode & 0o777]).toEqual(["", 0o640]);
  // The copy or the mark is a file itself.
  if (suffix !== "-keys") expect(lstatSync(file + suffix.replace(".partial", "")).isFile()).toBeTrue();
});
