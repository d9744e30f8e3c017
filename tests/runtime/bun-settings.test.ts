import { expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdtempSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunSettings } from "../../src/runtime/bun-settings.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** What a program knows after it applied the settings, and whether it still has its process id and arguments. */
async function applied(env: Record<string, string>, within: string[] = []) {
  using folder = createTempFolder();
  const script = join(folder.path, "script.ts");
  const module = join(import.meta.dir, "../../src/runtime/bun-settings.ts");
  await Bun.write(
    script,
    `import { applyBunSettings, bunSettings } from ${JSON.stringify(module)};
    applyBunSettings();
    const settings = Object.fromEntries(Object.keys(bunSettings(0)).map((name) => [name, process.env[name]]));
    console.log(JSON.stringify({ settings, pid: process.pid, args: process.argv.slice(2) }));`,
  );
  const child = Bun.spawn([...within, process.execPath, script, "serve", "--x"], {
    env,
    stdout: "pipe",
    stderr: "inherit",
  });
  const { settings, pid, args } = (await new Response(child.stdout).json()) as Record<string, unknown>;
  return { settings, isSame: pid === child.pid, args };
}

const path = process.env["PATH"] ?? "";
const memory = process.constrainedMemory();

test("the program gets the settings, as the same process with the same arguments", async () => {
  expect(await applied({ PATH: path })).toEqual({
    settings: bunSettings(memory),
    isSame: true,
    args: ["serve", "--x"],
  });
});

test("a setting that the operator has made stays", async () => {
  const made = { BUN_CONFIG_MAX_HTTP_REQUESTS: "300", MIMALLOC_PURGE_DELAY: "5" };
  const { settings } = await applied({ PATH: path, ...made });
  expect(settings).toEqual({ ...bunSettings(memory), ...made });
});

test.each([
  ["256 MiB", 256, "100"],
  ["512 MiB", 512, "10000"],
])("with %s of memory, free memory goes back after so many milliseconds", (_, mebibytes, expected) => {
  expect(bunSettings(mebibytes * 1024 ** 2)).toMatchObject({
    MIMALLOC_PURGE_DELAY: expected,
    MIMALLOC_PURGE_HOLES_MIN_INTERVAL: expected,
  });
});

const cgroups = "/sys/fs/cgroup/memory";
const canLimit = process.getuid?.() === 0 && existsSync(`${cgroups}/memory.limit_in_bytes`);

test.skipIf(!canLimit)("the limit of a cgroup counts, not the memory of the machine", async () => {
  const group = mkdtempSync(`${cgroups}/tollgate-test-`);
  try {
    writeFileSync(`${group}/memory.limit_in_bytes`, String(256 * 1024 ** 2));
    const { settings } = await applied({ PATH: path }, ["sh", "-c", `echo $$ >${group}/cgroup.procs; exec "$@"`, "sh"]);
    expect(settings).toMatchObject({ MIMALLOC_PURGE_DELAY: "100" });
  } finally {
    // What ran in it takes a moment to leave.
    await pollUntil(() => {
      rmdirSync(group);
      return true;
    });
  }
});

test("the sources do not obey a .env file where they are started as package.json says", async () => {
  using folder = createTempFolder();
  const repository = join(import.meta.dir, "../..");
  copyFileSync(join(repository, "bunfig.toml"), folder.file("bunfig.toml"));
  await Bun.write(folder.file(".env"), "LD_PRELOAD=/none.so\nDATA_DIR=/srv\n");
  const command = [process.execPath, join(repository, "src/main.ts"), "models"];
  const { stderr, exitCode } = Bun.spawnSync(command, { cwd: folder.path, env: { PATH: path } });
  expect({ exitCode, stderr: stderr.toString() }).toEqual({
    exitCode: 2,
    stderr: expect.stringMatching(/^tollgate: \.env: /),
  });
});
