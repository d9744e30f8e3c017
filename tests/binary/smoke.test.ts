import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, copyFileSync, readdirSync } from "node:fs";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { type AdminClient, type ListedKey, logIn } from "../support/admin-client.ts";
import { builtProgram } from "../support/built-program.ts";
import { findFreePort } from "../support/free-port.ts";
import { connectRaw } from "../support/raw-client.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";
import { pollUntil } from "../support/poll-until.ts";

const nobody = 65_534;
const isRoot = process.getuid?.() === 0;
/** Root drops its privileges, so that nothing depends on them. */
const asNobody = isRoot ? ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"] : [];

let backend: Simulator;
let folder: TempFolder;
let binary: string;
let url: string;
let child: Bun.Subprocess<"ignore", "pipe", "pipe">;

/** The environment is empty: no PATH, no HOME. */
const run = (args: string[], env: Record<string, string> = {}) =>
  Bun.spawn([...asNobody, binary, ...args], { cwd: folder.path, env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });

async function output(args: string[]): Promise<string> {
  const { stdout, exited } = run(args);
  const text = await new Response(stdout).text();
  expect(await exited).toBe(0);
  return text;
}

beforeAll(async () => {
  backend = startSimulator();
  folder = createTempFolder();
  // Outside the repository, which the other user may not be able to read.
  binary = folder.file("tollgate");
  copyFileSync(builtProgram(), binary);
  chmodSync(binary, 0o755);
  const port = findFreePort();
  url = `http://127.0.0.1:${port}`;
  await Bun.write(
    folder.file(".env"),
    `PORT=${port}\nPROXY_UPSTREAM_URL=${backend.url}\nADMIN_USERNAME=from-the-file\nADMIN_PASSWORD=hush hush\n`,
  );
  await Bun.write(folder.file("bunfig.toml"), 'preload = ["./no-such-file.ts"]\n');
  if (isRoot) chownSync(folder.path, nobody, nobody);
  chmodSync(folder.path, 0o755);
  child = run([], { ADMIN_USERNAME: "operator" });
  await pollUntil(async () => child.exitCode !== null || (await fetch(`${url}/healthz`)).ok);
});
afterAll(async () => {
  child.kill("SIGKILL");
  await child.exited;
  backend.stop();
  folder.remove();
});

describe("the binary", () => {
  let admin: AdminClient;
  let key: ListedKey;

  test("starts in an empty folder, as another user, without an environment, and reads .env", async () => {
    expect(child.exitCode).toBeNull();
    // Real environment variables take precedence over the file.
    await expect(logIn(url, "from-the-file", "hush hush")).rejects.toThrow("401");
    admin = await logIn(url, "operator", "hush hush");
    key = await admin.createKey("smoke");
    expect(readdirSync(folder.path)).toContain("data");
  });

  test("streams from the backend, and counts the usage", async () => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key.key}`, "content-type": "application/json", "x-simulate": "usage=11,22" },
      body: JSON.stringify({
        model: "m",
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
    expect(response.headers.get("content-type")).toStartWith("text/event-stream");
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
    expect((await admin.listKeys())[0]).toMatchObject({ total_input_tokens: 11, total_output_tokens: 22 });
  });

  test("runs more concurrent requests than the default limit of Bun", async () => {
    const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "Hi" }] });
    const headers = { "x-api-key": key.key, "Content-Type": "application/json", "x-simulate": "gap=forever@1" };
    const clients = await Promise.all(Array.from({ length: 300 }, () => connectRaw(url)));
    for (const client of clients) client.request("POST", "/v1/chat/completions", headers, body);
    for (const client of clients) expect(await client.nextEvent()).toStartWith("data: {");
    expect(backend.stats().open).toBe(300);
    for (const client of clients) client.reset();
  });

  test("serves the console with its scripts and styles", async () => {
    const page = await fetch(`${url}/usage`);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    const html = await page.text();
    const assets = [...html.matchAll(/(?:src|href)="(\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path ?? "");
    expect(assets.length).toBeGreaterThanOrEqual(2);
    for (const path of assets) {
      const asset = await fetch(url + path);
      expect([path, asset.status]).toEqual([path, 200]);
      expect(asset.headers.get("content-type")).toMatch(/^text\/(javascript|css)/);
      expect((await asset.text()).length).toBeGreaterThan(100);
    }
  });

  test("prints its version and commit, and help for every command", async () => {
    expect(await output(["--version"])).toMatch(/^tollgate \d+\.\d+\.\d+ \([0-9a-f]{12}\)\n$/);
    for (const command of ["serve", "demo", "push-gpu", "reset-password", "backup"]) {
      expect(await output(["--help"])).toContain(`  ${command} `);
      expect(await output([command, "--help"])).toContain(`tollgate ${command}`);
    }
  });

  test("exits with status 0 and nothing on standard error", async () => {
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    expect(await new Response(child.stderr).text()).toBe("");
  });
});
