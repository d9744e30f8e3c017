import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readlinkSync } from "node:fs";
import { markMoved } from "../../src/store/sqlite/database-file.ts";
import { lockDatabase } from "../../src/store/sqlite/lock-database.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine, runProgram } from "../support/program.ts";
import type { TempFolder } from "../support/temp-folder.ts";
import { copyFolder, openTestStore } from "../store/test-store.ts";

/** A data folder of a stopped server. */
async function createFolder(): Promise<TempFolder> {
  const { store, folder } = await openTestStore();
  await store.close();
  using original = folder;
  return copyFolder(original);
}

describe("a folder that was moved", () => {
  let folder: TempFolder;
  let sentence: string;
  beforeAll(async () => {
    folder = await createFolder();
    expect((await runProgram(["backup", folder.file("backup.db")], { DATA_DIR: folder.path })).status).toBe(0);
    markMoved(folder.file("tollgate.db"), Date.now());
    sentence = await Bun.file(folder.file("tollgate.db-moved")).text();
  });
  afterAll(() => folder.remove());

  test.each<[string, Record<string, string>]>([
    ["serve", {}],
    ["serve", { PROCESSES: "2" }],
    ["backup FOLDER/copy.db", {}],
    ["backup --keep 2 FOLDER", {}],
    ["reset-password", {}],
    ["restore FOLDER/backup.db", {}],
    ["check", {}],
  ])("is refused by %s %o, which says in one line how to go on", async (line, environment) => {
    const bytes = await Bun.file(folder.file("tollgate.db")).bytes();
    const files = readdirSync(folder.path);
    const args = line.replace("FOLDER", folder.path).split(" ");
    const { status, stdout, stderr } = await runProgram(args, { DATA_DIR: folder.path, PORT: "0", ...environment });
    expect(status).toBe(1);
    if (line === "check") expect(stdout).toMatch(/^failed +database /m);
    else expect(stderr).toMatch(/^tollgate: [^\n]*\n$/);
    expect(line === "check" ? stdout : stderr).toContain(`: ${sentence}`);
    expect(await Bun.file(folder.file("tollgate.db")).bytes()).toEqual(bytes);
    expect(readdirSync(folder.path)).toEqual(files);
  });
});

test("a server that starts while the folder is moved refuses it too", async () => {
  using folder = await createFolder();
  const file = folder.file("tollgate.db");
  const lock = lockDatabase(file);
  const server = Bun.spawn(commandLine(["serve"]), {
    env: { PATH: process.env["PATH"] ?? "", DATA_DIR: folder.path, PORT: "0" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const descriptors = `/proc/${server.pid}/fd`;
  await pollUntil(() => readdirSync(descriptors).some((name) => readlinkSync(`${descriptors}/${name}`) === file));
  markMoved(file, Date.now());
  lock.close();
  expect(await server.exited).toBe(1);
  expect(await new Response(server.stderr).text()).toContain("was moved to PostgreSQL on");
});
