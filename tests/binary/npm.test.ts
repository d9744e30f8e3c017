import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { copyFileSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { builtProgram } from "../support/built-program.ts";
import { findFreePort } from "../support/free-port.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

const repository = join(import.meta.dir, "../..");
const target = `${process.platform}-${process.arch}`;
/** No registry is asked for anything. */
const offline = ["--offline", "--no-audit", "--no-fund"];

/** In a network namespace without any interface, if this user may make one. */
const alone = Bun.spawnSync(["unshare", "--net", "true"]).success ? ["unshare", "--net"] : [];

describe("the npm packages", () => {
  let folder: TempFolder;
  let tarballs: string[];
  /** Installed globally. */
  let program: string;
  beforeAll(async () => {
    folder = createTempFolder();
    tarballs = await pack();
    const prefix = `--prefix=${folder.file("global")}`;
    await run(folder.path, ...alone, "npm", "install", "--global", prefix, ...offline, ...tarballs);
    program = folder.file("global/bin/tollgate");
  }, 240_000);
  afterAll(() => folder.remove());

  async function pack(): Promise<string[]> {
    mkdirSync(join(repository, "dist"), { recursive: true });
    copyFileSync(builtProgram(), join(repository, "dist", `tollgate-${target}`));
    await run(repository, ".ci/npm/pack", target);
    const packed = join(repository, "dist/npm");
    return readdirSync(packed).map((name) => join(packed, name));
  }

  async function run(cwd: string, ...command: string[]): Promise<string> {
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder.path };
    const child = Bun.spawn(command, { cwd, env, stdout: "pipe", stderr: "pipe" });
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
    if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}: ${stderr}${stdout}`);
    return stdout;
  }

  test("contain the schema of MODELS_FILE", async () => {
    const packed = await Bun.file(folder.file("global/lib/node_modules/tollgate/models.schema.json")).text();
    expect(packed).toBe(await run(folder.path, program, "models", "--schema"));
  });

  test("contain the README and what it links to", async () => {
    const packed = (path: string) => Bun.file(folder.file(`global/lib/node_modules/tollgate/${path}`));
    const links = (await packed("README.md").text()).matchAll(/\]\((?!https?:)([^)#]+)/g);
    const files = [...new Set(Array.from(links, ([, path = ""]) => path))];
    expect(files.length).toBeGreaterThan(15);
    expect(await Promise.all(files.map(async (path) => [path, await packed(path).exists()]))).toEqual(
      files.map((path) => [path, true]),
    );
  });

  test("run when installed globally, pass SIGTERM on, and report the exit status", async () => {
    const port = findFreePort();
    const env = { PATH: process.env["PATH"] ?? "", HOME: folder.path, PORT: String(port) };
    const demo = Bun.spawn([program, "demo"], { cwd: folder.path, env, stdout: "pipe" });
    const output = new Response(demo.stdout).text();
    await pollUntil(async () => (await fetch(`http://127.0.0.1:${port}/healthz`)).ok);
    demo.kill("SIGTERM");
    expect(await demo.exited).toBe(0);
    expect(await output).toContain("curl ");
    const wrong = Bun.spawnSync([program, "no-such-command"], { env });
    expect(wrong.exitCode).toBe(2);
  });

  test("let running responses finish when Ctrl-C reaches the launcher and the program at once", async () => {
    using backend = startSimulator();
    const url = `http://127.0.0.1:${findFreePort()}`;
    const env = {
      PATH: process.env["PATH"] ?? "",
      DATA_DIR: folder.file("data"),
      PORT: new URL(url).port,
      PROXY_UPSTREAM_URL: backend.url,
      ADMIN_PASSWORD: "password",
      LOG_LEVEL: "error",
    };
    // With a process group of its own, as a terminal gives to each command.
    const server = Bun.spawn([program, "serve"], { cwd: folder.path, env, stdout: "ignore", detached: true });
    await pollUntil(async () => (await fetch(`${url}/healthz`)).ok);
    const { key } = await (await logIn(url, "admin", "password")).createKey("test");
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "x-api-key": key, "content-type": "application/json", "x-simulate": "gap=500ms@2" },
      body: JSON.stringify({ model: "m", stream: true, max_tokens: 3, messages: [{ role: "user", content: "Hi" }] }),
    });
    process.kill(-server.pid, "SIGINT");
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
    expect(await server.exited).toBe(0);
  });

  test("report in one line that the platform's package is missing", async () => {
    const lonely = folder.file("lonely");
    mkdirSync(lonely);
    const launcher = tarballs.filter((name) => !name.includes(target));
    await run(lonely, "npm", "install", ...offline, "--omit=optional", ...launcher);
    const { exitCode, stderr } = Bun.spawnSync(["node_modules/.bin/tollgate"], { cwd: lonely });
    expect(exitCode).toBe(1);
    expect(stderr.toString()).toStartWith(`tollgate: the package @tollgate/${target} is missing; `);
  });
});
