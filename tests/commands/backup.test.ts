import { Database } from "bun:sqlite";
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, statSync, utimesSync } from "node:fs";
import { addBackup } from "../../src/store/sqlite/backup.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { logIn } from "../support/admin-client.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { shared } from "../support/shared.ts";

const password = "correct horse battery staple";
const program = shared(() => startProgram({ ADMIN_PASSWORD: password }));
beforeAll(async () => {
  await (
    await logIn(program.adminUrl, "admin", password)
  ).createKey("Before the backup", { key: "key-before-the-backup" });
});

const backUp = (file: string, options = {}) => runProgram(["backup", file], { DATA_DIR: program.dataDir }, options);

describe("tollgate backup", () => {
  test("copies the database of a running server into one complete file, which only its owner can read", async () => {
    using folder = createTempFolder();
    const file = folder.file("tollgate-backup.db");
    const { status, stdout, stderr } = await backUp(file);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toBe(`Copied ${program.dataDir}/tollgate.db to ${file}\n`);
    expect(readdirSync(folder.path)).toEqual(["tollgate-backup.db"]);
    // It contains all keys.
    expect(statSync(file).mode & 0o777).toBe(0o600);
    using copy = new Database(file, { readonly: true });
    expect(copy.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    expect(copy.query("SELECT name FROM keys").all()).toEqual([{ name: "Before the backup" }]);
  });

  test("makes a copy that a server can start from, with its keys and its password", async () => {
    using folder = createTempFolder();
    await backUp(folder.file("tollgate.db"));
    const restored = await startProgram({ DATA_DIR: folder.path });
    const [key] = await (await logIn(restored.adminUrl, "admin", password)).listKeys();
    expect(key?.name).toBe("Before the backup");
    await restored.stop();
  });

  test("refuses to copy a data folder if the data is in PostgreSQL", async () => {
    using folder = createTempFolder();
    const environment = { DATA_DIR: program.dataDir, DATABASE_URL: "postgres://h/d", SECRET_KEY: "0123456789abcdef" };
    const { status, stderr } = await runProgram(["backup", folder.file("copy.db")], environment);
    expect(status).toBe(1);
    expect(stderr).toBe(
      "tollgate: DATABASE_URL: backup copies only a data folder; use pg_dump for PostgreSQL (handbook: Backups)\n",
    );
    expect(existsSync(folder.file("copy.db"))).toBeFalse();
  });

  test("refuses to replace a file", async () => {
    using folder = createTempFolder();
    await Bun.write(folder.file("kept"), "precious");
    const { status, stderr } = await backUp(folder.file("kept"));
    expect(status).toBe(1);
    expect(stderr).toBe(`tollgate: "${folder.file("kept")}": the file already exists (EEXIST)\n`);
    expect(await Bun.file(folder.file("kept")).text()).toBe("precious");
  });

  test("reports that the folder of the file does not exist", async () => {
    using folder = createTempFolder();
    const { status, stderr } = await backUp(folder.file("no/such/copy.db"));
    expect(status).toBe(1);
    expect(stderr).toBe(`tollgate: "${folder.file("no/such/copy.db")}": the folder does not exist (ENOENT)\n`);
  });

  test("reports a missing database, and creates none", async () => {
    using folder = createTempFolder();
    const { status, stderr } = await runProgram(["backup", folder.file("copy.db")], { DATA_DIR: folder.file("data") });
    expect(status).toBe(1);
    expect(stderr).toStartWith(
      `tollgate: DATA_DIR: there is no database "${folder.file("data/tollgate.db")}"; use the folder`,
    );
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test("leaves no file if the database is damaged", async () => {
    using folder = createTempFolder();
    await Bun.write(folder.file("tollgate.db"), "not a database, and longer than a header of SQLite is".repeat(100));
    const { status, stderr } = await runProgram(["backup", folder.file("copy.db")], { DATA_DIR: folder.path });
    expect(status).toBe(1);
    expect(stderr).toContain("the file is not a database of this program");
    expect(readdirSync(folder.path)).toEqual(["tollgate.db"]);
  });

  describe("--keep", () => {
    const keep = (count: string, folder: string) =>
      runProgram(["backup", "--keep", count, folder], { DATA_DIR: program.dataDir });

    test("writes a copy named after the time, and deletes all but the newest", async () => {
      using folder = createTempFolder();
      const older = ["tollgate-20260101T000000Z.db", "tollgate-20260102T000000Z.db", "tollgate-20260103T000000Z.db"];
      for (const name of older) await Bun.write(folder.file(name), "an older backup");
      const { status, stdout, stderr } = await keep("2", folder.path);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const [kept, written = "", ...more] = readdirSync(folder.path).toSorted();
      expect({ kept, more }).toEqual({ kept: "tollgate-20260103T000000Z.db", more: [] });
      expect(written).toMatch(/^tollgate-\d{8}T\d{6}Z\.db$/);
      expect(stdout).toBe(`Copied ${program.dataDir}/tollgate.db to ${folder.file(written)}\n`);
      using copy = new Database(folder.file(written), { readonly: true });
      expect(copy.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    });

    test("keeps the new copy, also if the clock was ahead before", async () => {
      using folder = createTempFolder();
      await Bun.write(folder.file("tollgate-20990101T000000Z.db"), "a backup of the future");
      expect((await keep("1", folder.path)).status).toBe(0);
      expect(readdirSync(folder.path)).toEqual([expect.not.stringContaining("2099")]);
    });

    test("writes one copy for each of several within a second", async () => {
      using folder = createTempFolder();
      const clock = (): number => Date.UTC(2026, 10, 21, 9, 45, 59);
      const series = { file: databaseFile(program.dataDir), folder: folder.path, keep: 3, clock };
      const written = await Promise.all([addBackup(series), addBackup(series), addBackup(series)]);
      const names = ["tollgate-20261121T094559Z.db", "tollgate-20261121T094600Z.db", "tollgate-20261121T094601Z.db"];
      expect(written.toSorted()).toEqual(names.map(folder.file));
      expect(readdirSync(folder.path).toSorted()).toEqual(names);
      for (const file of written) expect(Bun.file(file).size).toBe(Bun.file(written[0] ?? "").size);
    });

    test("deletes no other files", async () => {
      using folder = createTempFolder();
      const others = ["tollgate.db", "tollgate-2026.db", "x-tollgate-20260101T000000Z.db", "notes.txt"];
      for (const name of others) await Bun.write(folder.file(name), "precious");
      expect((await keep("1", folder.path)).status).toBe(0);
      expect(readdirSync(folder.path)).toHaveLength(others.length + 1);
      for (const name of others) expect(await Bun.file(folder.file(name)).text()).toBe("precious");
    });

    test("counts no copy that was killed, and deletes it after a day", async () => {
      using folder = createTempFolder();
      const killed = ["tollgate-20260101T000000Z.db", "tollgate-20260101T000000Z.db.partial"];
      for (const name of killed) await Bun.write(folder.file(name), "");
      await Bun.write(folder.file("tollgate-20250101T000000Z.db"), "an older backup");
      expect((await keep("2", folder.path)).status).toBe(0);
      expect(readdirSync(folder.path)).toHaveLength(4);
      for (const name of killed) utimesSync(folder.file(name), 0, 0);
      expect((await keep("3", folder.path)).status).toBe(0);
      const left = readdirSync(folder.path).toSorted();
      expect(left).toHaveLength(3);
      expect(left[0]).toBe("tollgate-20250101T000000Z.db");
    });

    test("deletes none if the copy fails", async () => {
      using folder = createTempFolder();
      using empty = createTempFolder();
      const names = ["tollgate-20260101T000000Z.db", "tollgate-20260102T000000Z.db"];
      for (const name of names) await Bun.write(folder.file(name), "an older backup");
      await Bun.write(empty.file("tollgate.db"), "not a database, and longer than a header of SQLite is".repeat(100));
      const { status } = await runProgram(["backup", "--keep", "1", folder.path], { DATA_DIR: empty.path });
      expect(status).toBe(1);
      expect(readdirSync(folder.path).toSorted()).toEqual(names);
    });

    test("reports that there is no such folder", async () => {
      using folder = createTempFolder();
      const { status, stderr } = await keep("1", folder.file("none"));
      expect({ status, stderr }).toEqual({
        status: 1,
        stderr: `tollgate: "${folder.file("none")}": there is no such folder\n`,
      });
    });

    test("reports in one line an older copy that cannot be deleted", async () => {
      using folder = createTempFolder();
      const older = folder.file("tollgate-20260101T000000Z.db");
      mkdirSync(older);
      const { status, stderr } = await keep("1", folder.path);
      expect(status).toBe(1);
      expect(stderr).toStartWith(`tollgate: "${folder.path}": `);
      expect(stderr).toContain(older);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(readdirSync(folder.path)).toHaveLength(2);
    });
  });
});

test("a server with BACKUP_DIR makes one by itself, once for all its processes, and Settings and metrics say when", async () => {
  using folder = createTempFolder();
  const own = await startProgram({
    ADMIN_PASSWORD: password,
    PROCESSES: "2",
    BACKUP_DIR: folder.path,
    METRICS_TOKEN: "metrics",
  });
  const admin = await logIn(own.adminUrl, "admin", password);
  type Shown = { backup: { succeeded_at: string | null; problem: unknown } };
  const { backup } = await pollUntil(async () => {
    const shown = await admin.expectOk<Shown>("GET", "/api/settings");
    return shown.backup.succeeded_at !== null && shown;
  });
  expect(backup).toMatchObject({ problem: null });
  const seconds = await pollUntil(async () => {
    const response = await fetch(`${own.adminUrl}/metrics`, { headers: { authorization: "Bearer metrics" } });
    const line = /^tollgate_backup_last_success_timestamp_seconds (\S+)$/m.exec(await response.text());
    return line !== null && Number(line[1]);
  });
  expect(seconds).toBe(Date.parse(backup.succeeded_at ?? "") / 1000);
  expect(await own.stop()).toBe(0);
  expect(readdirSync(folder.path)).toEqual([expect.stringMatching(/^tollgate-\d{8}T183000Z\.db$/)]);
  const { stderr } = await runProgram(["restore", folder.file(readdirSync(folder.path)[0] ?? "")]);
  expect(stderr).toBe("");
});
