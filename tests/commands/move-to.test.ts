import { describe, expect, test } from "bun:test";
import { readdirSync, rmSync } from "node:fs";
import { openStore } from "../../src/store/open.ts";
import type { Store } from "../../src/store/store.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { logIn } from "../support/admin-client.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine, type FinishedProgram, runProgram, startProgram } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { copyFolder, createKeys, type DailyRow, memoryLog, readReport, usageIncrement } from "../store/test-store.ts";

const clock = Date.now;
const { log } = memoryLog();
const createDatabase = async () => (await sharedPostgres()).createDatabase();
const openTarget = (databaseUrl: string) => openStore({ dataDir: "", databaseUrl, clock, log });
const minute = Math.floor(clock() / 60_000);

async function fill(store: Store): Promise<void> {
  const ids = await createKeys(store, ["a", "b 이름 🔑", 'c "quoted" \\', "gone"]);
  await store.keys.update(2, { isActive: false });
  for (let n = 0; n < 30; n++) {
    await store.usage.add(
      ids.flatMap((keyId) =>
        Array.from({ length: 20 }, (_, m) =>
          usageIncrement({ keyId, minute: minute - n * 20 - m, inputTokens: n * m }),
        ),
      ),
      { ledger: "one", number: n + 1 },
    );
  }
  await store.keys.delete(4);
  for (let n = 0; n < 20; n++) {
    const reading = { name: "GPU", tempC: null, memoryUsedMb: 1, memoryTotalMb: 2, utilizationPct: 3 };
    const readings = [
      { ...reading, gpuId: 0, powerDrawW: 0.1 + n },
      { ...reading, gpuId: 1, powerDrawW: null },
    ];
    await store.gpu.add({ keyId: 1, recordedAt: clock() - n * 1000, host: "alpha", readings });
  }
  await store.sessions.create("hash", { csrfToken: "token", username: "admin", expiresAt: clock() + 1_000_000 });
  await store.sessions.countLoginAttempt([{ scope: "::1", attempts: 10 }], clock());
  const response = { responseId: "resp_1", keyId: 1, closedAt: clock(), inputTokens: 0, outputTokens: 0 };
  await store.usage.add([], undefined, [
    { ...response, as: "owned", backend: "gpu" },
    { ...response, as: "created" },
  ]);
  await store.settings.set("password_hash", "secret");
}

/** Everything that the store returns. */
const contentOf = async (store: Store) => ({
  keys: await store.keys.list(),
  days: await readReport<DailyRow>(store.usage.daily("2000-01-01")),
  points: await readReport(store.usage.history({ since: 0, bucketMinutes: 5 })),
  gpus: await store.gpu.latest(),
  power: await readReport(store.gpu.powerHistory({ since: 0, bucketMinutes: 1 })),
  gpuHistory: await readReport(store.gpu.history({ since: 0, bucketMinutes: 1 }, 0)),
  session: await store.sessions.find("hash", clock()),
  owners: await store.usage.findOwners(["resp_1"]),
  password: await store.settings.find("password_hash"),
});

/** A data folder of a stopped server. */
async function filledFolder(): Promise<{ folder: TempFolder; content: Awaited<ReturnType<typeof contentOf>> }> {
  using original = createTempFolder();
  const store = await openStore({ dataDir: original.path, clock, log });
  await fill(store);
  const content = await contentOf(store);
  await store.close();
  return { folder: copyFolder(original), content };
}

const moveTo = (folder: TempFolder, url: string): Promise<FinishedProgram> =>
  runProgram(["move-to", url], { DATA_DIR: folder.path });

/** Kills a move while one of its statements waits in the target. */
async function killMove(folder: TempFolder, url: string, trigger: string): Promise<void> {
  const postgres = await sharedPostgres();
  await (await openTarget(url)).close();
  const wait = "create function wait() returns trigger language plpgsql as $$ begin perform pg_sleep(600); end $$";
  await postgres.run(`${wait}; ${trigger}`, url);
  const child = Bun.spawn(commandLine(["move-to", url]), {
    env: { PATH: process.env["PATH"] ?? "", DATA_DIR: folder.path },
    stdio: ["ignore", "ignore", "ignore"],
  });
  const sleeping = "from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
  await pollUntil(async () => (await postgres.run(`select 1 ${sleeping}`, url)).length > 0);
  child.kill("SIGKILL");
  await child.exited;
  await postgres.run(`select pg_terminate_backend(pid) ${sleeping}`, url);
  await pollUntil(async () => (await postgres.run(`select 1 ${sleeping}`, url)).length === 0);
}

async function expectMoved(folder: TempFolder, url: string, content: object): Promise<void> {
  expect(readdirSync(folder.path)).toContain("tollgate.db-moved");
  const target = await openTarget(url);
  expect(await contentOf(target)).toEqual(content as Awaited<ReturnType<typeof contentOf>>);
  await target.close();
  folder.remove();
}

describe.skipIf(whyNoPostgres !== undefined)("move-to", () => {
  test("copies everything, and continues the ids", async () => {
    const { folder, content } = await filledFolder();
    const url = await createDatabase();
    const finished = await moveTo(folder, url);
    expect(finished).toMatchObject({ status: 0, stderr: "" });
    expect(finished.stdout).toMatch(/^usage_minute {5}2400 of 2400 rows$/m);
    expect(finished.stdout).toContain("verified all sums");
    const { host, pathname } = new URL(url);
    expect(finished.stdout).toStartWith(`From ${folder.file("tollgate.db")} to PostgreSQL at ${host}${pathname}\n`);
    const target = await openTarget(url);
    expect(await contentOf(target)).toEqual(content);
    expect(await createKeys(target, ["next"])).toEqual([5]);
    // The flush that was the last one before is known here too.
    await target.usage.add([usageIncrement({ keyId: 1, minute })], { ledger: "one", number: 30 });
    expect((await target.keys.list())[0]).toEqual(content.keys[0]);
    await target.close();
    folder.remove();
  });

  test.each(["--url-stdin", "DATABASE_URL"])("reads the address from %s", async (from) => {
    const { folder, content } = await filledFolder();
    const url = await createDatabase();
    const stdin = from === "--url-stdin";
    const finished = await runProgram(
      stdin ? ["move-to", "--url-stdin"] : ["move-to"],
      { DATA_DIR: folder.path, ...(stdin ? {} : { DATABASE_URL: url }) },
      { stdin: stdin ? `${url}\n` : "" },
    );
    expect(finished).toMatchObject({ status: 0, stderr: "" });
    const target = await openTarget(url);
    expect(await contentOf(target)).toEqual(content);
    await target.close();
    folder.remove();
  });

  test("refuses a database that is not empty, and does not change it", async () => {
    const { folder } = await filledFolder();
    const url = await createDatabase();
    const target = await openTarget(url);
    await createKeys(target, ["there before"]);
    const finished = await moveTo(folder, url);
    expect(finished.status).toBe(1);
    expect(finished.stderr).toBe("tollgate: move-to: the target is not empty: there are rows in keys\n");
    expect((await target.keys.list()).map(({ name }) => name)).toEqual(["there before"]);
    await target.close();
    folder.remove();
  });

  test("can be run again after an interruption, and until then no server starts on the target", async () => {
    const { folder, content } = await filledFolder();
    const url = await createDatabase();
    const postgres = await sharedPostgres();
    await (await openTarget(url)).close();
    // Writing the last table fails, after all others have been copied.
    await postgres.run("alter table usage_minute add constraint broken check (minute < 0)", url);
    const broken = await moveTo(folder, url);
    expect(broken.status).toBe(1);
    expect(broken.stderr).toMatch(/^tollgate: move-to: [^\n]*broken[^\n]*\n$/);
    const [row] = await postgres.run("select count(*) as keys from keys", url);
    expect(row).toEqual({ keys: "3" });
    await expect(openTarget(url)).rejects.toThrow("run `tollgate move-to` again");

    await postgres.run("alter table usage_minute drop constraint broken", url);
    expect(await moveTo(folder, url)).toMatchObject({ status: 0, stderr: "" });
    const target = await openTarget(url);
    expect(await contentOf(target)).toEqual(content);
    await target.close();
    folder.remove();
  });

  test("marks the folder without the address, and the folder is as before once the mark is deleted", async () => {
    const { folder, content } = await filledFolder();
    const url = (await createDatabase()).replace("tollgate@", "tollgate:hush@");
    expect((await moveTo(folder, url)).stdout).toContain(folder.file("tollgate.db-moved"));
    const mark = await Bun.file(folder.file("tollgate.db-moved")).text();
    expect(mark).toMatch(
      /^tollgate\.db was moved to PostgreSQL on \S+; set DATABASE_URL, or delete tollgate\.db-moved /,
    );
    const [, at = ""] = / on (\S+);/.exec(mark) ?? [];
    expect(Date.parse(at)).toBeWithin(clock() - 60_000, clock() + 1);
    expect(mark).not.toMatch(/hush|postgres:|127\.0\.0\.1/);
    rmSync(folder.file("tollgate.db-moved"));
    const store = await openStore({ dataDir: folder.path, clock, log });
    expect(await contentOf(store)).toEqual(content);
    await store.close();
    folder.remove();
  });

  test("refuses beside a running server, and changes nothing", async () => {
    using folder = createTempFolder();
    const program = await startProgram({ DATA_DIR: folder.path, ADMIN_PASSWORD: "a long password" });
    const url = await createDatabase();
    expect(await moveTo(folder, url)).toMatchObject({
      status: 1,
      stderr: "tollgate: move-to: a server uses the database; stop it first\n",
    });
    expect(readdirSync(folder.path)).not.toContain("tollgate.db-moved");
    expect(await (await logIn(program.adminUrl, "admin", "a long password")).createKey("still serving")).toBeObject();
    await program.stop();
    expect((await moveTo(folder, url)).status).toBe(0);
  });

  test("that is killed while it copies leaves a folder without a mark", async () => {
    const { folder, content } = await filledFolder();
    const url = await createDatabase();
    await killMove(
      folder,
      url,
      "create trigger wait before insert on usage_minute for each row execute function wait()",
    );
    expect(readdirSync(folder.path)).not.toContain("tollgate.db-moved");
    await expect(openTarget(url)).rejects.toThrow("run `tollgate move-to` again");
    using copy = copyFolder(folder);
    const store = await openStore({ dataDir: copy.path, clock, log });
    expect(await contentOf(store)).toEqual(content);
    await store.close();
    await (await sharedPostgres()).run("drop trigger wait on usage_minute", url);
    expect(await moveTo(folder, url)).toMatchObject({ status: 0, stderr: "" });
    await expectMoved(folder, url, content);
  });

  test("that is killed between the mark and its last statement is repeated", async () => {
    const { folder, content } = await filledFolder();
    const url = await createDatabase();
    await killMove(folder, url, "create trigger wait before delete on settings for each row execute function wait()");
    expect((await runProgram(["check"], { DATA_DIR: folder.path })).stdout).toContain("was moved to PostgreSQL on");
    await expect(openTarget(url)).rejects.toThrow("run `tollgate move-to` again");
    await (await sharedPostgres()).run("drop trigger wait on settings", url);
    // Only to the same target: another one may hold an older copy.
    expect((await moveTo(folder, await createDatabase())).stderr).toContain("was moved to PostgreSQL on");
    expect(await moveTo(folder, url)).toMatchObject({ status: 0, stderr: "" });
    await expectMoved(folder, url, content);
  });
});

test("move-to reports a missing database", async () => {
  const finished = await runProgram(["move-to", "postgres://u:hush@127.0.0.1:1/t"]);
  expect(finished.status).toBe(1);
  expect(finished.stderr).toMatch(/^tollgate: DATA_DIR: there is no database [^\n]*\n$/);
});
