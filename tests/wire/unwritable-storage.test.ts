import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, rmSync } from "node:fs";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { commandLine, startProgram } from "../support/program.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { shared } from "../support/shared.ts";

const isRoot = process.getuid?.() === 0;
const canMount = isRoot && Bun.spawnSync(["unshare", "--mount", "true"]).success;

const backend = shared(() => startSimulator());
/** Holds a database with one key, of a server that has stopped. */
const made = shared(() => createTempFolder());
let key: string;
beforeAll(async () => {
  const program = await startProgram({ DATA_DIR: made.path, ADMIN_PASSWORD: "password" });
  ({ key } = await (await logIn(program.adminUrl, "admin", "password")).createKey("test"));
  await program.stop();
});

/** Runs the program after some lines of shell, in which `$1` is the data folder. */
function spawnAfter(lines: string, dataDir: string, launcher: string[] = [], command = "serve") {
  const port = String(findFreePort());
  const env = { PATH: process.env["PATH"] ?? "", HOME: dataDir, DATA_DIR: dataDir, PORT: port };
  const script = `${lines}\nshift; exec "$@"`;
  const child = Bun.spawn([...launcher, "sh", "-ec", script, "sh", dataDir, ...commandLine(command.split(" "))], {
    env: { ...env, PROXY_UPSTREAM_URL: backend.url, ADMIN_PASSWORD: "password" },
    cwd: "/",
    stdout: "pipe",
    stderr: "pipe",
  });
  return { child, url: `http://127.0.0.1:${port}` };
}

async function failureOf({ child }: ReturnType<typeof spawnAfter>) {
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}

const inMounts = ["unshare", "--mount"];
const mounted = 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"';
const names = ["tollgate.db", "tollgate.db-created", "secret_key"];

describe.skipIf(!canMount)("a data folder on a read-only disk", () => {
  test("ends a start with one line that says so", async () => {
    const { status, stderr, stdout } = await failureOf(spawnAfter(mounted, made.path, inMounts));
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `tollgate: DATA_DIR "${made.path}": the data folder is on a read-only disk (EROFS)\n`,
    });
    expect(stdout).not.toContain("thread");
  });

  test("is named by check", async () => {
    const { status, stdout } = await failureOf(spawnAfter(mounted, made.path, inMounts, "check"));
    expect(status).toBe(1);
    expect(stdout).toContain(`${made.path}/tollgate.db: the data folder is on a read-only disk (EROFS)`);
  });
});

describe("a restore", () => {
  /** @returns a folder that everybody may read, with a copy of the database */
  function copyDatabase(mode: number): TempFolder {
    const folder = createTempFolder();
    chmodSync(folder.path, 0o755);
    copyFileSync(made.file("tollgate.db"), folder.file("copy.db"));
    chmodSync(folder.file("copy.db"), mode);
    return folder;
  }

  test.skipIf(!canMount)("into a folder on a read-only disk says so", async () => {
    using copy = copyDatabase(0o600);
    const { status, stderr } = await failureOf(
      spawnAfter(mounted, made.path, inMounts, `restore ${copy.file("copy.db")}`),
    );
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: "tollgate: restore: the data folder is on a read-only disk (EROFS)\n",
    });
  });

  test.skipIf(isRoot && Bun.which("setpriv") === null)("of a file that this user cannot read names it", async () => {
    using folder = createTempFolder();
    if (isRoot) chownSync(folder.path, 65534, 65534);
    using copy = copyDatabase(isRoot ? 0o600 : 0);
    const { status, stderr } = await failureOf(
      spawnAfter(":", folder.path, asNobody, `restore ${copy.file("copy.db")}`),
    );
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: `tollgate: restore: "${copy.file("copy.db")}": it cannot be read (EACCES)\n`,
    });
  });
});

/** What runs the program as a user who is not root. */
const asNobody = isRoot ? ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : [];

describe.skipIf(isRoot && Bun.which("setpriv") === null)("files that the user cannot write", () => {
  test.each<[string, (folder: TempFolder) => void, string]>([
    [
      "the folder",
      (folder) => chmodSync(folder.path, 0o500),
      'DATA_DIR "FOLDER": the data folder is not writable; check its permissions (EACCES)',
    ],
    [
      "the database",
      (folder) => chmodSync(folder.file("tollgate.db"), 0o400),
      'DATA_DIR "FOLDER": this user cannot read and write tollgate.db; check its owner and mode (EACCES)',
    ],
    [
      "a log that another user left",
      (folder) => {
        copyFileSync(made.file("tollgate.db"), folder.file("tollgate.db-wal"));
        chmodSync(folder.file("tollgate.db-wal"), 0);
        if (isRoot) chownSync(folder.file("tollgate.db-wal"), 0, 0);
      },
      "this user cannot read and write tollgate.db-wal",
    ],
  ])("are named: %s", async (_, prepare, said) => {
    using folder = createTempFolder();
    for (const name of names) {
      copyFileSync(made.file(name), folder.file(name));
      if (isRoot) chownSync(folder.file(name), 65534, 65534);
    }
    if (isRoot) chownSync(folder.path, 65534, 65534);
    prepare(folder);
    const { status, stderr } = await failureOf(spawnAfter(":", folder.path, asNobody));
    expect(status).toBe(1);
    expect(stderr.replace(folder.path, "FOLDER")).toContain(said);
  });
});

describe.skipIf(!canMount)("a full disk", () => {
  const filled = `
    mount -t tmpfs -o size=4m none "$1"
    cp "$FROM"/* "$1"
    dd if=/dev/zero of="$1/fill" bs=1k 2>/dev/null || true`;

  test("lets a server start, serve its keys, and count when there is room again", async () => {
    using folder = createTempFolder();
    const { child, url } = spawnAfter(filled.replace("$FROM", made.path), folder.path, inMounts);
    let output = "";
    void child.stdout.pipeTo(
      new WritableStream({ write: (bytes) => void (output += new TextDecoder().decode(bytes)) }),
    );
    try {
      await pollUntil(async () => child.exitCode !== null || (await fetch(`${url}/healthz`)).ok);
      expect(child.exitCode === null ? "" : await new Response(child.stderr).text()).toBe("");
      expect(output).toContain("Disk full; counts wait in memory until there is room");
      expect((await fetch(`${url}/readyz`)).status).toBe(503);
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": "usage=3,4" },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }] }),
      });
      expect(response.status).toBe(200);
      rmSync(`/proc/${child.pid}/root${folder.path}/fill`);
      const admin = await logIn(url, "admin", "password");
      await pollUntil(async () => (await admin.listKeys())[0]?.total_input_tokens === 3);
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });

  test("keeps the first start from creating a database", async () => {
    using folder = createTempFolder();
    const lines = filled.replace('cp "$FROM"/* "$1"', "");
    const { status, stderr } = await failureOf(spawnAfter(lines, folder.path, inMounts));
    expect({ status, stderr }).toEqual({
      status: 1,
      stderr: expect.stringMatching(/the disk is full \((?:SQLITE_FULL|ENOSPC)\)\n$/),
    });
  });
});
