import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { existsSync, readFileSync, statSync } from "node:fs";
import { readMigrations } from "../../../src/store/schema/migrations.ts";
import { openWriter } from "../../../src/store/sqlite/engine.ts";
import { openSqliteStore } from "../../../src/store/sqlite/open.ts";
import { manual } from "../../support/manual.ts";
import { createTempFolder } from "../../support/temp-folder.ts";
import { memoryLog, openTestStore } from "../test-store.ts";

const migrations = readMigrations("migrations");

describe("opening a SQLite database", () => {
  test("refuses a database that a newer version took something away from, and does not change it", async () => {
    using folder = createTempFolder();
    const file = folder.file("tollgate.db");
    const later = {
      createdAt: (migrations.at(-1)?.createdAt ?? 0) + 1,
      hash: "later",
      statements: ["ALTER TABLE audit DROP COLUMN count"],
    };
    openWriter(file, [...migrations, later]).close();
    const before = readFileSync(file);
    const opening = openSqliteStore({ dataDir: folder.path, clock: Date.now, log: memoryLog().log });
    await expect(opening).rejects.toThrow(/^the database was written by a newer version/);
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  test("uses a write-ahead log and synchronous=NORMAL, as the handbook describes", async () => {
    using folder = createTempFolder();
    const engine = openWriter(folder.file("tollgate.db"));
    const [synchronous] = await engine.rows<{ synchronous: number }>(sql`pragma synchronous`);
    expect(synchronous).toEqual({ synchronous: 1 });
    expect((await engine.rows<{ journal_mode: number }>(sql`pragma journal_mode`))[0]).toEqual({
      journal_mode: "wal" as never,
    });
    engine.close();
    expect(manual).toContain("WAL mode with `synchronous=NORMAL`");
  });

  test("creates a file that only its owner may read, and closing leaves everything in it", async () => {
    using folder = createTempFolder();
    await using opened = await openTestStore(Date.now, folder);
    await opened.store.checkWritable();
    expect(statSync(opened.file).mode & 0o777).toBe(0o600);
    expect(statSync(`${opened.file}-wal`).mode & 0o777).toBe(0o600);
    await opened.store.close();
    expect(existsSync(`${opened.file}-wal`) ? statSync(`${opened.file}-wal`).size : 0).toBe(0);
  });
});
