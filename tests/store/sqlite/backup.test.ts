import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { backupDatabase, createBackups, timestampOf } from "../../../src/store/sqlite/backup.ts";
import { createTempFolder } from "../../support/temp-folder.ts";
import { createKeys, memoryLog, openTestStore, type SqliteTestStore, usageIncrement } from "../test-store.ts";

const backUp = ({ file }: SqliteTestStore, target: string) => backupDatabase({ file, target, clock: Date.now });

test("a backup made under load is a consistent database", async () => {
  await using opened = await openTestStore(() => 29_000_000 * 60_000);
  await createKeys(opened.store, ["a"]);
  using copy = createTempFolder();
  const stop = new AbortController();
  let written = 0;
  const load = (async () => {
    while (!stop.signal.aborted) {
      await opened.store.usage.add([usageIncrement({ keyId: 1, minute: 29_000_000 + (written % 500) })]);
      written++;
    }
  })();
  await backUp(opened, copy.file("backup.db"));
  stop.abort();
  await load;
  expect(statSync(copy.file("backup.db")).mode & 0o777).toBe(0o600);
  expect(readdirSync(copy.path)).toEqual(["backup.db"]);

  renameSync(copy.file("backup.db"), copy.file("tollgate.db"));
  await using restored = await openTestStore(Date.now, copy);
  const [key] = await restored.store.keys.list();
  expect(await restored.store.keys.findActive("secret of a")).toEqual({ id: 1, rules: null, expiresAt: null });
  const minutes = await restored.store.usage.sumOfMinutes(29_000_000, 29_000_500);
  expect(minutes.requestCount).toBe(key?.requestCount ?? -1);
  expect(minutes.requestCount).toBeLessThanOrEqual(written);
});

test("of two backups to one file, one succeeds and one fails", async () => {
  await using opened = await openTestStore();
  const target = opened.folder.file("backup.db");
  const results = await Promise.allSettled([backUp(opened, target), backUp(opened, target)]);
  expect(results.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  expect(readFileSync(target).subarray(0, 15).toString()).toBe("SQLite format 3");
});

describe("the server's own backups", () => {
  const hourMs = 3_600_000;
  /** 03:30 in Seoul. */
  const due = Date.parse("2026-06-15T03:30:00+09:00");
  const nameOf = (ms: number): string => `tollgate-${timestampOf(ms)}.db`;

  async function open({ keep = 7, freeBytes }: { keep?: number; freeBytes?: () => number } = {}) {
    const state = { now: due + hourMs };
    const opened = await openTestStore(() => state.now);
    const folder = createTempFolder();
    const { entries, log } = memoryLog();
    const create = (store: SqliteTestStore) =>
      createBackups({
        file: opened.file,
        plan: { folder: folder.path, atMinute: 3 * 60 + 30, keep },
        facts: store.store.database,
        clock: () => state.now,
        log,
        freeBytes,
      });
    const stack = new AsyncDisposableStack();
    stack.use(opened);
    stack.defer(() => folder.remove());
    return {
      state,
      folder,
      entries,
      create,
      backups: create(opened),
      opened,
      facts: () => opened.store.database.backups(),
      list: () => readdirSync(folder.path).toSorted(),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    };
  }

  test("one is made for each day's time, once, and as many are kept as are to be", async () => {
    await using night = await open({ keep: 2 });
    const { state, folder, backups, list, facts } = night;
    await backups.run();
    expect(list()).toEqual([nameOf(due)]);
    expect(await facts()).toEqual({ succeeded: { at: state.now, file: nameOf(due) } });
    // Moved elsewhere, it need not be made again.
    rmSync(folder.file(nameOf(due)));
    state.now += hourMs;
    await backups.run();
    expect(list()).toEqual([]);
    for (let day = 1; day <= 3; day++) {
      state.now = due + day * 24 * hourMs - 1;
      await backups.run();
      state.now++;
      await backups.run();
    }
    expect(list()).toEqual([nameOf(due + 48 * hourMs), nameOf(due + 72 * hourMs)]);
    expect(night.entries.map(({ message }) => message)).toEqual(Array(4).fill("Backup written"));
  });

  test("of two processes one makes it", async () => {
    await using night = await open();
    await using other = await night.opened.openAnother();
    await Promise.all([night.backups.run(), night.create(other as SqliteTestStore).run()]);
    expect(night.list()).toEqual([nameOf(due)]);
    expect(night.entries.map(({ message }) => message)).toEqual(["Backup written"]);
  });

  test("none is begun with less free space than 1.2 times the database; it is tried again an hour later", async () => {
    let freeBytes = 1000;
    await using night = await open({ freeBytes: () => freeBytes });
    const { state, backups, list, facts } = night;
    await backups.run();
    expect(list()).toEqual([]);
    const problem = { kind: "skipped" as const, at: state.now, reason: expect.stringMatching(/^1000 bytes are free/) };
    expect(await facts()).toEqual({ problem });
    freeBytes = 1e12;
    state.now += hourMs - 1;
    await backups.run();
    expect(await facts()).toEqual({ problem });
    state.now++;
    await backups.run();
    expect(list()).toEqual([nameOf(due)]);
    expect(await facts()).toEqual({ succeeded: { at: state.now, file: nameOf(due) } });
  });

  test("a folder that is not there is not created, and the failure is known until a good one", async () => {
    await using night = await open();
    const { state, backups, folder, facts } = night;
    folder.remove();
    await backups.run();
    expect(existsSync(folder.path)).toBe(false);
    expect(await facts()).toEqual({
      problem: { kind: "failed" as const, at: state.now, reason: "the folder does not exist (ENOENT)" },
    });
    expect(night.entries).toEqual([expect.objectContaining({ level: "error", message: "Backup failed" })]);
    mkdirSync(folder.path);
    state.now += hourMs;
    await backups.run();
    expect(await facts()).toEqual({ succeeded: { at: state.now, file: nameOf(due) } });
  });

  test("one that cannot be read back is none", async () => {
    await using night = await open();
    await using opened = await openTestStore();
    // A copy of it is as damaged as it is.
    using database = new Database(opened.file);
    for (const line of [
      "CREATE TABLE t (a CHECK (a > 0))",
      "PRAGMA ignore_check_constraints = ON",
      "INSERT INTO t VALUES (-1)",
    ]) {
      database.run(line);
    }
    const target = night.folder.file("backup.db");
    await expect(backUp(opened, target)).rejects.toThrow("the copy is damaged");
    expect(night.list()).toEqual([]);
  });

  test("what one left that was killed goes after a day, and a stop leaves nothing", async () => {
    await using night = await open();
    const { state, backups, folder, list } = night;
    for (const name of [nameOf(due - 24 * hourMs), `${nameOf(due - 24 * hourMs)}.partial`]) {
      writeFileSync(folder.file(name), "");
      utimesSync(folder.file(name), (due - 24 * hourMs) / 1000, (due - 24 * hourMs) / 1000);
    }
    const running = backups.run();
    await backups.stop();
    await running;
    expect(list()).toHaveLength(2);
    const again = night.create(night.opened);
    await again.run();
    expect(list()).toEqual([nameOf(due)]);
    expect(state.now).toBe(due + hourMs);
  });
});
