import { afterAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { readMigrations, takesAway } from "../../src/store/schema/migrations.ts";
import { logIn } from "../support/admin-client.ts";
import { repositoryRoot } from "../support/import-table.ts";
import { pollUntil } from "../support/poll-until.ts";
import { sharedPostgres, whyNoPostgres } from "../support/postgres.ts";
import { startProgram } from "../support/program.ts";
import { startSimulator } from "../support/simulator/simulator.ts";
import { createTempFolder } from "../support/temp-folder.ts";

/** The last release; until there is one, the commit after which no database needs steps of its own. */
const previous = "65e18de8c781";
const git = (...args: string[]) => Bun.spawnSync(["git", ...args], { cwd: repositoryRoot });
const hasPrevious = git("cat-file", "-e", `${previous}^{commit}`).success;
const breaks = readMigrations("postgres-migrations").slice(1).some(takesAway);

describe.skipIf(whyNoPostgres !== undefined || !hasPrevious)("beside an instance of the previous version", () => {
  const folder = createTempFolder();
  afterAll(() => folder.remove());

  const childrenOf = (pid: number): number[] =>
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => {
        try {
          return Number(/\) . (\d+)/.exec(readFileSync(`/proc/${name}/stat`, "utf8"))?.[1]) === pid;
        } catch {
          return false;
        }
      })
      .map(Number);

  test("a new one takes part, or refuses to start, and no acknowledged request is lost", async () => {
    const { stdout: archive } = git("archive", previous, "src", "drizzle", "package.json", "tsconfig.json");
    Bun.spawnSync(["tar", "-x", "-C", folder.path], { stdin: archive });
    symlinkSync(join(repositoryRoot, "node_modules"), folder.file("node_modules"));
    using backend = startSimulator();
    const settings = {
      DATABASE_URL: await (await sharedPostgres()).createDatabase(),
      SECRET_KEY: "0123456789abcdef",
      ADMIN_PASSWORD: "pass word",
      PROXY_UPSTREAM_URL: backend.url,
    };
    const command = [process.execPath, folder.file("src/main.ts"), "serve"];
    const old = await startProgram({ ...settings, PROCESSES: "2" }, ["serve"], command);
    const { key } = await (await logIn(old.adminUrl, "admin", "pass word")).createKey("k");
    const sent = { acknowledged: 0, broken: 0 };
    const ending = new AbortController();
    const load = async (url: string): Promise<void> => {
      while (!ending.signal.aborted) {
        const body = JSON.stringify({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] });
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        const isWhole = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body }).then(
          async (response) => response.ok && (await response.text()) !== "",
          () => false,
        );
        sent[isWhole ? "acknowledged" : "broken"] += 1;
      }
    };
    const until = async (more: number): Promise<void> => {
      const from = sent.acknowledged;
      await pollUntil(() => sent.acknowledged >= from + more, 60_000);
    };
    const loads = [load(old.url), load(old.url)];
    await until(20);
    const starting = startProgram(settings);
    const total = async (url: string) =>
      (await (await logIn(url, "admin", "pass word")).listKeys()).find(({ name }) => name === "k")?.total_request_count;
    if (breaks) {
      await expect(starting).rejects.toThrow("an instance of an earlier version still runs");
      await until(20);
      ending.abort();
      await Promise.all(loads);
      expect(await total(old.adminUrl)).toBe(sent.acknowledged);
      expect(await old.stop()).toBe(0);
      return;
    }
    const present = await starting;
    loads.push(load(present.url));
    await until(40);
    process.kill(childrenOf(old.pid)[0] ?? NaN, "SIGKILL");
    await until(60);
    ending.abort();
    await Promise.all(loads);
    // What ends old writes all that it counted.
    expect(await old.stop()).toBe(0);
    const counted = (await total(present.adminUrl)) ?? 0;
    expect(counted).toBeGreaterThanOrEqual(sent.acknowledged);
    expect(counted).toBeLessThanOrEqual(sent.acknowledged + sent.broken);
    await present.stop();
  }, 180_000);
});
