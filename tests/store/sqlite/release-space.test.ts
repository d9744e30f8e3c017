import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { copyDatabase } from "../../../src/store/sqlite/copy-database.ts";
import { createSpaceReleaser } from "../../../src/store/sqlite/release-space.ts";
import { openWriter } from "../../../src/store/sqlite/engine.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

const pageBytes = 4096;

/** A database in WAL mode, most of whose pages are free. */
function openSparse(file: string, autoVacuum: "NONE" | "INCREMENTAL"): Database {
  const client = new Database(file);
  client.run(`PRAGMA auto_vacuum = ${autoVacuum}`);
  client.run("PRAGMA journal_mode = WAL");
  client.run("CREATE TABLE rows (id INTEGER PRIMARY KEY, text TEXT)");
  client.run(`INSERT INTO rows WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
    SELECT i, hex(zeroblob(500)) FROM n`);
  client.run("DELETE FROM rows WHERE id % 10 > 0");
  client.run("DELETE FROM rows WHERE id > 1000");
  client.run("PRAGMA wal_checkpoint(TRUNCATE)");
  return client;
}

describe("free pages", () => {
  test("go back to the disk in bounded steps, except some for new rows", () => {
    using folder = createTempFolder();
    const file = folder.file("sparse.db");
    using client = openSparse(file, "INCREMENTAL");
    const before = statSync(file).size;
    const release = createSpaceReleaser(client);
    let steps = 0;
    while (release() > 0) steps++;
    client.run("PRAGMA wal_checkpoint(TRUNCATE)");
    const after = statSync(file).size;
    expect(before).toBeGreaterThan(4000 * pageBytes);
    expect(after).toBeLessThan(1300 * pageBytes);
    expect(after).toBeGreaterThan(1024 * pageBytes);
    expect(steps).toBeWithin((before - after) / pageBytes / 64 - 2, (before - after) / pageBytes / 64 + 2);
    expect(client.query("SELECT count(*) AS n FROM rows").get()).toEqual({ n: 100 });
    expect(client.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  });

  test("stay in a database that was made without that, and nothing fails", () => {
    using folder = createTempFolder();
    using client = openSparse(folder.file("old.db"), "NONE");
    expect(createSpaceReleaser(client)()).toBe(0);
  });

  test("go back after a backup of such a database was restored", () => {
    using folder = createTempFolder();
    openSparse(folder.file("old.db"), "NONE").close();
    copyDatabase(folder.file("old.db"), folder.file("copy.db"), { isInUse: true });
    using copy = new Database(folder.file("copy.db"));
    expect(copy.query("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
  });

  test("go back in each new database of this program", () => {
    using folder = createTempFolder();
    const engine = openWriter(folder.file("tollgate.db"));
    using client = new Database(folder.file("tollgate.db"));
    expect(client.query("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
    expect(engine.releaseSpace()).toBe(0);
    engine.close();
  });
});
