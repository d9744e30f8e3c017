import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "../support/free-port.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { runClients } from "./routing/live-clients.ts";
import type { LiveEnginesOptions } from "./routing/live-engines.ts";
import { routers, type StartRouter } from "./routing/live-targets.ts";
import { agents, type Scenario } from "./routing/model.ts";
import { formatNumber, markdownTable } from "./table.ts";

// The server with its rule, and other routers with theirs, in front of four simulated engines with prefix caches, over HTTP.
// Each gets the same sessions, one after the other. Times in the table are those of the sessions, which pass faster, but for
// the CPU time that a router takes for each request.
// `bun tests/bench/routing-live.ts [SECONDS] [SPEED] [even|slow|small] [ONLY]`, on a machine that does nothing else.
// BENCH_VLLM_ROUTER and BENCH_SGLANG_ROUTER name programs that are left out otherwise.

const scenarios: Readonly<Record<string, Scenario>> = {
  even: agents,
  slow: { ...agents, speeds: [1 / 3, 1, 1, 1] },
  small: { ...agents, cacheTokens: 500_000 },
};

const [seconds = 75, speed = 12] = process.argv.slice(2, 4).map(Number);
const scenario = scenarios[process.argv[4] ?? "even"] ?? agents;
const only = process.argv[5] ?? "";

async function measure(name: string, startRouter: StartRouter, folder: string): Promise<string[]> {
  mkdirSync(folder);
  const ports = scenario.speeds.map(() => findFreePort());
  const { speeds, tokensPerSecond, cacheTokens } = scenario;
  await using engines = await startEngines({ ports, speed, speeds, tokensPerSecond, cacheTokens });
  const router = await startRouter(engines.urls, folder);
  try {
    const { served, failed, cached, p95 } = await runClients(router, scenario, { seed: 1, seconds, speed });
    const figures = [served, failed, 100 * cached, p95, router.cpuMs() / served];
    return [name, ...figures.map(formatNumber)];
  } finally {
    await router.stop();
  }
}

async function startEngines(options: LiveEnginesOptions): Promise<AsyncDisposable & { urls: string[] }> {
  const command = [process.execPath, join(import.meta.dir, "routing/live-engines.ts"), JSON.stringify(options)];
  const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  await child.stdout.getReader().read();
  return {
    urls: options.ports.map((port) => `http://127.0.0.1:${port}`),
    async [Symbol.asyncDispose]() {
      kill();
      process.off("exit", kill);
      await child.exited;
    },
  };
}

using folder = createTempFolder();
const rows: string[][] = [];
for (const [index, [name, startRouter]] of Object.entries(routers).entries()) {
  if (!name.includes(only)) continue;
  rows.push(await measure(name, startRouter, folder.file(String(index))));
  process.stderr.write(`${rows.at(-1)?.join("  ")}\n`);
}
process.stdout.write(`${markdownTable([["rule", "served", "failed", "cached %", "p95 s", "CPU ms"], ...rows])}\n`);
