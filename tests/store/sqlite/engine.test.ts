import { Database } from "bun:sqlite";
import { dlopen, ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { closeSync, openSync } from "node:fs";
import { openWriter } from "../../../src/store/sqlite/engine.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

/** How many pages of a file are not on the disk yet, from cachestat(2); undefined before Linux 6.5. */
function unsyncedPages(file: string): number | undefined {
  const args = ["i64", "i64", "ptr", "ptr", "i64"] as const;
  const { symbols } = dlopen("libc.so.6", { syscall: { args, returns: "i64" } });
  const [wholeFile, found] = [new BigUint64Array(2), new BigUint64Array(5)];
  const descriptor = openSync(file, "r");
  const failed = Number(symbols.syscall(451, descriptor, ptr(wholeFile), ptr(found), 0));
  closeSync(descriptor);
  const [, dirty = 0n, inWriteback = 0n] = found;
  return failed === 0 ? Number(dirty + inWriteback) : undefined;
}

using probe = createTempFolder();
await Bun.write(probe.file("probe"), "x");
const canSee = process.platform === "linux" && (unsyncedPages(probe.file("probe")) ?? 0) > 0;

// Else the checkpoint syncs it, for which commits wait.
test.skipIf(!canSee)("the thread syncs what it copies of the log, also where another connection is in the way", () => {
  using folder = createTempFolder();
  const file = folder.file("tollgate.db");
  const engine = openWriter(file);
  using writer = new Database(file);
  using reader = new Database(file);
  writer.run("PRAGMA wal_autocheckpoint = 0");
  writer.run("CREATE TABLE filled (bytes)");
  const fill = (): void => void writer.run("INSERT INTO filled VALUES (randomblob(400000))");
  fill();
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM filled").get();
  fill();
  // SQLite's own copies 100 pages, and leaves their sync to a later one.
  writer.query("PRAGMA wal_checkpoint(PASSIVE)").get();
  expect(unsyncedPages(file)).toBeGreaterThan(50);
  engine.copyLog();
  expect(unsyncedPages(file)).toBe(0);
  reader.run("ROLLBACK");
  engine.close();
});
