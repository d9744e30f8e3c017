import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { timestampOf } from "../../src/store/sqlite/backup.ts";
import { logIn } from "../support/admin-client.ts";
import { type FinishedProgram, runProgram, startProgram } from "../support/program.ts";
import { copyFolder } from "../store/test-store.ts";
import { shared } from "../support/shared.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const password = "correct horse battery staple";

/** A data folder with one key, and a backup of it; then a second key was created. The server has stopped. */
const original = shared(async () => {
  const folder = createTempFolder();
  const program = await startProgram({ DATA_DIR: folder.file("data"), ADMIN_PASSWORD: password });
  const admin = await logIn(program.adminUrl, "admin", password);
  await admin.createKey("Before the backup");
  await runProgram(["backup", folder.file("copy.db")], { DATA_DIR: folder.file("data") });
  await admin.createKey("After the backup");
  await program.stop();
  return folder;
});

/** A copy of it. */
function createBackup() {
  const folder = copyFolder(original);
  return { ...folder, dataDir: folder.file("data"), backup: folder.file("copy.db"), [Symbol.dispose]: folder.remove };
}

const restore = (dataDir: string, file: string): Promise<FinishedProgram> =>
  runProgram(["restore", file], { DATA_DIR: dataDir });

const namesIn = (file: string): unknown[] => {
  using database = new Database(file, { readonly: true });
  return database
    .query<{ name: string }, []>("SELECT name FROM keys ORDER BY id")
    .all()
    .map(({ name }) => name);
};

const keptIn = (dataDir: string): string[] =>
  readdirSync(dataDir)
    .filter((name) => name.includes(".before-"))
    .toSorted();

describe("tollgate restore", () => {
  test("replaces the database and keeps the old one", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    const { status, stdout, stderr } = await restore(dataDir, backup);
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const [kept = ""] = keptIn(dataDir);
    expect(kept).toMatch(/^tollgate\.db\.before-\d{8}T\d{6}Z$/);
    expect(stdout).toBe(`Restored ${dataDir}/tollgate.db from ${backup}\nThe old database is ${dataDir}/${kept}\n`);
    expect(namesIn(`${dataDir}/tollgate.db`)).toEqual(["Before the backup"]);
    expect(namesIn(`${dataDir}/${kept}`)).toEqual(["Before the backup", "After the backup"]);
    expect(statSync(`${dataDir}/tollgate.db`).mode & 0o777).toBe(0o600);
  });

  test("keeps what an earlier one within the same second kept", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    const names = Array.from(
      { length: 60 },
      (_, second) => `tollgate.db.before-${timestampOf(Date.now() + second * 1000)}`,
    );
    for (const name of names) await Bun.write(`${dataDir}/${name}`, "kept before");
    const { status, stdout } = await restore(dataDir, backup);
    expect(status).toBe(0);
    for (const name of names) expect(await Bun.file(`${dataDir}/${name}`).text()).toBe("kept before");
    const [kept = "", ...more] = keptIn(dataDir).filter((name) => name.endsWith("Z") && !names.includes(name));
    expect(more).toEqual([]);
    expect(stdout).toContain(`The old database is ${dataDir}/${kept}\n`);
    expect(namesIn(`${dataDir}/${kept}`)).toEqual(["Before the backup", "After the backup"]);
  });

  test("leaves a database that a server starts with", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    await restore(dataDir, backup);
    const program = await startProgram({ DATA_DIR: dataDir });
    const keys = await (await logIn(program.adminUrl, "admin", password)).listKeys();
    expect(keys.map(({ name }) => name)).toEqual(["Before the backup"]);
    await program.stop();
  });

  test("refuses while a server runs, and changes nothing", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    const program = await startProgram({ DATA_DIR: dataDir });
    const { status, stderr } = await restore(dataDir, backup);
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "tollgate: restore: a server uses the database; stop it first\n",
    });
    expect(keptIn(dataDir)).toEqual([]);
    expect(await (await logIn(program.adminUrl, "admin", password)).listKeys()).toHaveLength(2);
    await program.stop();
  });

  test("keeps the requests that a killed server left in the log of the old database", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    const program = await startProgram({ DATA_DIR: dataDir });
    await (await logIn(program.adminUrl, "admin", password)).createKey("In the log");
    await program.stop("SIGKILL");
    expect(existsSync(`${dataDir}/tollgate.db-wal`)).toBeTrue();
    expect((await restore(dataDir, backup)).status).toBe(0);
    expect(existsSync(`${dataDir}/tollgate.db-wal`)).toBeFalse();
    expect(namesIn(`${dataDir}/tollgate.db`)).toEqual(["Before the backup"]);
    expect(namesIn(`${dataDir}/${keptIn(dataDir)[0]}`)).toEqual([
      "Before the backup",
      "After the backup",
      "In the log",
    ]);
  });

  test("replaces a damaged database, and no log of it stays", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    await Bun.write(`${dataDir}/tollgate.db`, "damaged, and longer than a header of SQLite is".repeat(100));
    await Bun.write(`${dataDir}/tollgate.db-wal`, "log");
    expect((await restore(dataDir, backup)).status).toBe(0);
    expect(namesIn(`${dataDir}/tollgate.db`)).toEqual(["Before the backup"]);
    expect(await Bun.file(`${dataDir}/${keptIn(dataDir)[0]}`).text()).toStartWith("damaged");
    expect(existsSync(`${dataDir}/tollgate.db-wal`)).toBeFalse();
  });

  test("creates a missing data folder, which only its owner can read", async () => {
    using folder = createBackup();
    const dataDir = folder.file("new/data");
    expect(await restore(dataDir, folder.backup)).toMatchObject({
      status: 0,
      stdout: `Restored ${dataDir}/tollgate.db from ${folder.backup}\n`,
    });
    expect(readdirSync(dataDir)).toEqual(["tollgate.db"]);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  });

  test("reads a backup that cannot be written, in a folder that cannot", async () => {
    using folder = createBackup();
    const { dataDir } = folder;
    const safe = folder.file("safe");
    mkdirSync(safe);
    copyFileSync(folder.file("copy.db"), `${safe}/copy.db`);
    chmodSync(`${safe}/copy.db`, 0o400);
    chmodSync(safe, 0o500);
    expect((await restore(dataDir, `${safe}/copy.db`)).status).toBe(0);
    expect(readdirSync(safe)).toEqual(["copy.db"]);
    chmodSync(safe, 0o700);
  });

  test("refuses a backup that is damaged, foreign, empty, missing, newer, or no file, and changes nothing", async () => {
    using folder = createBackup();
    const { dataDir, backup } = folder;
    // SQLite empties and removes its log when a database is closed last.
    const listFiles = () =>
      readdirSync(dataDir)
        .filter((name) => !/-(wal|shm)$/.test(name))
        .toSorted();
    const before = listFiles();
    const bytes = await Bun.file(backup).bytes();
    // Below the header and the schema.
    await Bun.write(
      folder.file("damaged"),
      bytes.map((byte, at) => (at > 8192 ? byte ^ 0x5a : byte)),
    );
    await Bun.write(folder.file("cut"), bytes.slice(0, bytes.length / 2));
    await Bun.write(folder.file("empty"), "");
    await Bun.write(folder.file("text"), "not a database");
    copyFileSync(backup, folder.file("newer"));
    using newer = new Database(folder.file("newer"));
    newer.run("UPDATE __drizzle_migrations SET created_at = -99999999999999 WHERE created_at < 0");
    newer.run("INSERT INTO __drizzle_migrations (hash, created_at) VALUES ('x', 99999999999999)");
    using foreign = new Database(folder.file("foreign"));
    foreign.run("CREATE TABLE keys (id INTEGER)");
    symlinkSync(`${dataDir}/tollgate.db`, folder.file("itself"));
    const problems = {
      damaged: "damaged",
      cut: "damaged",
      empty: "it is empty; name a backup",
      text: "not a database of this program",
      newer: "written by a newer version",
      foreign: "belongs to another program",
      itself: "is the database itself",
      missing: "there is no such file",
      data: "it is not a file",
      "text/copy.db": "it cannot be read (ENOTDIR)",
      ["x".repeat(300)]: "it cannot be read (ENAMETOOLONG)",
    };
    for (const [name, problem] of Object.entries(problems)) {
      const { status, stdout, stderr } = await restore(dataDir, folder.file(name));
      expect({ name, status, stdout }).toEqual({ name, status: 1, stdout: "" });
      expect(stderr).toStartWith(`tollgate: restore: "${folder.file(name)}": `);
      expect(stderr).toContain(problem);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
    }
    expect(listFiles()).toEqual(before);
    expect(namesIn(`${dataDir}/tollgate.db`)).toHaveLength(2);
  });

  test("refuses to replace a data folder if the data is in PostgreSQL", async () => {
    const environment = { DATABASE_URL: "postgres://h/d", SECRET_KEY: "0123456789abcdef" };
    const { status, stderr } = await runProgram(["restore", "copy.db"], environment);
    expect(status).toBe(1);
    expect(stderr).toBe(
      "tollgate: DATABASE_URL: restore replaces only a data folder; use pg_restore for PostgreSQL (handbook: Backups)\n",
    );
  });
});
