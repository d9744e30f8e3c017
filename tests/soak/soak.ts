/** `bun tests/soak/soak.ts [--minutes 10] [--seed N]`: mixed traffic with faults, and exact sums at its end. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Simulator, startSimulator } from "../../src/simulator/simulator.ts";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createRandom, type Random } from "../support/random.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type Holdings, holdingsOf } from "./holdings.ts";
import { differences, readCounters, type Tally } from "./tally.ts";
import { talk, type Traffic } from "./traffic.ts";

const { values } = parseArgs({ options: { minutes: { type: "string" }, seed: { type: "string" } } });
const minutes = Number(values.minutes ?? 10);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));

const clients = 24;
const metricsToken = "soak-metrics-token";
const settlingMs = 60_000;

interface Soak {
  program: Program;
  backend: Simulator;
  admin: AdminClient;
  traffic: Traffic;
  isOver: () => boolean;
}

async function soak(): Promise<string[]> {
  using folder = createTempFolder();
  using backend = startSimulator({ recordRequests: 0 });
  const program = await startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    PROXY_FORCE_STREAM_USAGE: "final",
    DATA_DIR: folder.path,
    ADMIN_PASSWORD: "soak-password",
    METRICS_TOKEN: metricsToken,
    LOG_LEVEL: "error",
  });
  const admin = await logIn(program.adminUrl, "admin", "soak-password");
  const keys = await Promise.all(["a", "b", "c", "d", "e"].map((name) => admin.createKey(name)));
  const traffic: Traffic = {
    url: program.url,
    keys: keys.map(({ name, key }) => ({ name, key })),
    random: createRandom(seed),
    seen: new Map(),
    finished: new Map(),
    kinds: new Map(),
  };
  const endsAt = performance.now() + minutes * 60_000;
  const run: Soak = { program, backend, admin, traffic, isOver: () => performance.now() >= endsAt };
  await openConsole(run);
  const before = holdingsOf(program.pid);
  const memory = watchMemory(program);
  await Promise.all([
    ...Array.from({ length: clients }, () => talk(traffic, run.isOver)),
    repeat(run, 500, () => openConsole(run)),
    repeat(run, 1000, () => pushGpus(run)),
    repeat(run, 15_000, () => holdDatabase(folder.path, createRandom(seed + 1))),
  ]);
  const growth = memory.stop();
  const problems = [...(await sumProblems(run)), ...(await leakProblems(run, before)), ...growth.problems];
  if ((await program.stop()) !== 0) problems.push("The program did not end with 0");
  print(`Requests: ${[...traffic.kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
  print(`Counted: ${[...traffic.seen].map(([name, sum]) => `${name} ${JSON.stringify(sum)}`).join(", ")}`);
  print(`RSS ${growth.told}`);
  if (program.stderr() !== "") print(`Logged as errors:\n${program.stderr()}`);
  return problems;
}

async function repeat({ isOver }: Soak, everyMs: number, act: () => Promise<void>): Promise<void> {
  while (!isOver()) {
    await act();
    await Bun.sleep(everyMs);
  }
}

const consoleQuestions = [
  "/api/me",
  "/api/keys",
  "/api/usage/summary",
  "/api/usage/total",
  "/api/usage/daily",
  "/api/usage/history?days=30&bucket_minutes=60",
  "/api/gpu-stats",
  "/api/gpu-stats/power-history",
  "/readyz",
];

/** Looks at every page, and writes as well: a key that comes and goes. */
async function openConsole({ admin, program }: Soak): Promise<void> {
  for (const path of consoleQuestions) await (await admin.request("GET", path)).text();
  const metrics = await fetch(`${program.adminUrl}/metrics`, { headers: { authorization: `Bearer ${metricsToken}` } });
  await metrics.text();
  const made = await admin.request("POST", "/api/keys", { name: "passing" });
  if (!made.ok) return;
  const { id } = (await made.json()) as { id: number };
  await (await admin.request("PATCH", `/api/keys/${id}`, { is_active: false })).text();
  await pollUntil(async () => (await admin.request("DELETE", `/api/keys/${id}`)).ok);
}

async function pushGpus({ program, traffic }: Soak): Promise<void> {
  const gpus = Array.from({ length: 8 }, (_, gpu) => ({ gpu_id: gpu, name: "Soaked", power_draw_w: 100 + gpu }));
  const headers = { "x-api-key": traffic.keys[0]?.key ?? "", "content-type": "application/json" };
  const body = JSON.stringify({ gpus });
  await (await fetch(`${program.adminUrl}/api/gpu-stats`, { method: "POST", headers, body })).text();
}

/** Another program takes the database for a moment. */
async function holdDatabase(dataDir: string, random: Random): Promise<void> {
  const other = new Database(join(dataDir, "tollgate.db"));
  other.run("PRAGMA busy_timeout = 5000");
  other.run("BEGIN IMMEDIATE");
  await Bun.sleep(random.below(2500));
  other.run("ROLLBACK");
  other.close();
}

/** Clients, simulator and counters must agree, key by key, once what waited is written. */
async function sumProblems({ admin, traffic, backend }: Soak): Promise<string[]> {
  const compare = async (): Promise<string[]> => {
    const counters = await readCounters(admin);
    return Object.entries(counters).flatMap(([name, tally]) =>
      differences(traffic.seen, tally).map((line) => `Clients against ${name}: ${line}`),
    );
  };
  await pollUntil(async () => (await compare()).length === 0, settlingMs).catch(() => {});
  const simulator: Tally = new Map(Object.entries(backend.stats().reportedByUser));
  const told = differences(traffic.finished, simulator).map((line) => `Clients against the simulator: ${line}`);
  return [...(await compare()), ...told];
}

/** What the program holds must come down to what it held before, and to connections whose other end is kept alive. */
async function leakProblems({ program, backend }: Soak, before: Holdings): Promise<string[]> {
  const quiet = (): boolean => backend.stats().open === 0 && holdingsOf(program.pid).leftBehind === 0;
  await pollUntil(quiet, settlingMs).catch(() => {});
  const after = holdingsOf(program.pid);
  const kept = backend.connections();
  const problems: string[] = [];
  if (backend.stats().open > 0) problems.push(`${backend.stats().open} requests to the backend never ended`);
  if (after.leftBehind > 0) problems.push(`${after.leftBehind} connections were left behind`);
  if (after.files.length > before.files.length) problems.push(`Files were left open: ${after.files.join(" ")}`);
  if (kept > 2 * clients) problems.push(`${kept} connections to the backend are kept`);
  backend.stop();
  await pollUntil(() => holdingsOf(program.pid).connections <= after.connections - kept).catch(() =>
    problems.push("Connections outlived the backend"),
  );
  const cpuMs = program.cpuMs();
  await Bun.sleep(3000);
  const idleMs = program.cpuMs() - cpuMs;
  if (idleMs > 150) problems.push(`${idleMs} ms of CPU in three idle seconds: something still runs`);
  print(
    `Open files ${before.files.length} before, ${after.files.length} after; kept connections ${after.connections}, ${kept} of them to the backend; idle CPU ${idleMs} ms in 3 s`,
  );
  return problems;
}

interface Growth {
  told: string;
  problems: string[];
}

const megabyte = 1024 * 1024;

/** Resident memory once a second; the medians of ten seconds each are compared. */
function watchMemory(program: Program): { stop: () => Growth } {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(program.rssBytes() / megabyte), 1000);
  const median = (part: number[]): number => part.toSorted((a, b) => a - b)[part.length >> 1] ?? 0;
  return {
    stop() {
      clearInterval(timer);
      const [first, last] = [median(samples.slice(55, 65)), median(samples.slice(-10))];
      const told = `${first.toFixed(0)} MB after the first minute, ${last.toFixed(0)} MB at the end, ${Math.max(...samples).toFixed(0)} MB at most`;
      const grew = samples.length > 75 && last > first * 1.1;
      return { told, problems: grew ? [`Memory grew: ${told}`] : [] };
    },
  };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

print(`Soaking for ${minutes} minutes with the seed ${seed}`);
const problems = await soak();
for (const problem of problems) print(`PROBLEM ${problem}`);
print(problems.length === 0 ? "Everything adds up." : `${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
