/**
 * Mixed traffic with faults, and by turns with attackers, after which all counts must agree, also after `kill -9`, and
 * attackers must not have delayed the others: `bun tests/soak/soak.ts [--minutes 10] [--seed N]`
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { type Program, startProgram } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { pollUntil } from "../support/poll-until.ts";
import { type OpenDescriptors, openDescriptorsOf } from "./open-descriptors.ts";
import { attackIn, compareLatencies, startProbe } from "./attackers.ts";
import { killProblems } from "./kill.ts";
import { planPhases, type Stretch } from "./phases.ts";
import { probeName, probeUsage } from "./probe.ts";
import { add, differences, readCounters, type Tally } from "./tally.ts";
import { sendRequests, type Traffic } from "./traffic.ts";

const { values } = parseArgs({ options: { minutes: { type: "string" }, seed: { type: "string" } } });
const minutes = Number(values.minutes ?? 10);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));

const clients = 24;
/** How many keys have limits: their requests are admitted, and their counts settle what they reserved. */
const limitedKeys = 2;
const neverReached = {
  max_concurrency: 1e6,
  requests_per_minute: 1e9,
  tokens_per_minute: 1e12,
  tokens_per_day: 1e12,
  tokens_per_month: 1e12,
};
const metricsToken = "soak-metrics-token";
const password = "soak-password";
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
  const environment = {
    PROXY_FORCE_STREAM_USAGE: "final",
    DATA_DIR: folder.path,
    ADMIN_PASSWORD: password,
    METRICS_TOKEN: metricsToken,
    LOG_LEVEL: "error",
    // Attackers have many addresses.
    TRUST_PROXY: "1",
  };
  const program = await startProgram({ ...environment, PROXY_UPSTREAM_URL: backend.url });
  const admin = await logIn(program.adminUrl, "admin", password);
  const keys = await Promise.all(["a", "b", "c", "d", "e"].map((name) => admin.createKey(name)));
  for (const { id } of keys.slice(0, limitedKeys)) await admin.updateKey(id, neverReached);
  const [probeKey, hostileKey] = [await admin.createKey(probeName), await admin.createKey("hostile")];
  const traffic: Traffic = {
    url: program.url,
    keys: keys.map(({ name, key }) => ({ name, key })),
    random: createRandom(seed),
    seen: new Map(),
    finished: new Map(),
    kinds: new Map(),
  };
  const phases = planPhases(Date.now(), Date.now() + minutes * 60_000);
  const endsAt = phases.at(-1)?.to ?? 0;
  const run: Soak = { program, backend, admin, traffic, isOver: () => Date.now() >= endsAt };
  await openConsole(run);
  const before = openDescriptorsOf(program.pid);
  const memory = watchMemory(program);
  const stopProbe = startProbe(program.url, probeKey.key);
  const [attack] = await Promise.all([
    attackIn(phases, program, hostileKey.key, password),
    ...Array.from({ length: clients }, () => sendRequests(traffic, run.isOver)),
    repeat(run, 500, () => openConsole(run)),
    repeat(run, 1000, () => pushGpus(run)),
    lockIn(phases, folder.path),
  ]);
  const latencies = await stopProbe();
  countProbe(traffic, latencies.length);
  const growth = memory.stop();
  const delays = compareLatencies(latencies, phases);
  const problems = [...(await sumProblems(run)), ...(await leakProblems(run, before)), ...growth.problems];
  problems.push(...attack.problems, ...delays.problems);
  if ((await program.stop()) !== 0) problems.push("The program did not exit with 0");
  problems.push(...(await killProblems({ environment, password, keys: traffic.keys, clients, seed })));
  print(`Requests: ${[...traffic.kinds].map(([kind, count]) => `${count} ${kind}`).join(", ")}`);
  print(
    `Attacks: ${Object.entries(attack.sent)
      .map(([kind, count]) => `${count} ${kind}`)
      .join(", ")}`,
  );
  print(`Counted: ${[...traffic.seen].map(([name, sum]) => `${name} ${JSON.stringify(sum)}`).join(", ")}`);
  print(`RSS ${growth.summary}`);
  print(delays.summary);
  if (program.stderr() !== "") print(`Errors logged:\n${program.stderr()}`);
  return problems;
}

function countProbe({ seen, finished }: Traffic, requests: number): void {
  const sum = { requests, inputTokens: requests * probeUsage.input, outputTokens: requests * probeUsage.output };
  for (const tally of [seen, finished]) add(tally, probeName, sum);
}

async function repeat({ isOver }: Soak, everyMs: number, act: () => Promise<void>): Promise<void> {
  while (!isOver()) {
    await act();
    await Bun.sleep(everyMs);
  }
}

const consolePaths = [
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

/** Requests the data of every page, and creates, disables and deletes a key. */
async function openConsole({ admin, program }: Soak): Promise<void> {
  for (const path of consolePaths) await (await admin.request("GET", path)).text();
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

/** Plays another program that locks the database for a random time. */
async function lockIn(phases: readonly Stretch[], dataDir: string): Promise<void> {
  const random = createRandom(seed + 1);
  for (const { phase, from } of phases) {
    if (phase !== "locked") continue;
    await Bun.sleep(Math.max(0, from - Date.now()));
    const other = new Database(join(dataDir, "tollgate.db"));
    other.run("PRAGMA busy_timeout = 5000");
    other.run("BEGIN IMMEDIATE");
    await Bun.sleep(random.below(2500));
    other.run("ROLLBACK");
    other.close();
  }
}

/** Clients, simulator and counters must agree for each key once all waiting counts are written. */
async function sumProblems({ admin, traffic, backend }: Soak): Promise<string[]> {
  const compare = async (): Promise<string[]> => {
    const counters = await readCounters(admin);
    return Object.entries(counters).flatMap(([name, tally]) =>
      differences(traffic.seen, tally).map((line) => `Clients vs. ${name}: ${line}`),
    );
  };
  await pollUntil(async () => (await compare()).length === 0, settlingMs).catch(() => {});
  const held = (await admin.listKeys()).filter(({ used }) => (used["max_concurrency"] ?? 0) > 0);
  const places = held.map(({ name, used }) => `${name} still holds ${used["max_concurrency"]} places`);
  const simulator: Tally = new Map(Object.entries(backend.stats().reportedByUser));
  const reported = differences(traffic.finished, simulator).map((line) => `Clients vs. simulator: ${line}`);
  return [...(await compare()), ...places, ...reported];
}

/** The program's descriptors must return to the initial ones, apart from kept-alive connections to the backend. */
async function leakProblems({ program, backend }: Soak, before: OpenDescriptors): Promise<string[]> {
  const quiet = (): boolean => backend.stats().open === 0 && openDescriptorsOf(program.pid).closeWait === 0;
  await pollUntil(quiet, settlingMs).catch(() => {});
  const after = openDescriptorsOf(program.pid);
  const kept = backend.connections();
  const problems: string[] = [];
  if (backend.stats().open > 0) problems.push(`${backend.stats().open} requests to the backend never ended`);
  if (after.closeWait > 0) problems.push(`${after.closeWait} connections that the peer closed are still open`);
  if (after.files.length > before.files.length) problems.push(`Files are still open: ${after.files.join(" ")}`);
  if (kept > 2 * clients) problems.push(`${kept} connections to the backend are still open`);
  backend.stop();
  await pollUntil(() => openDescriptorsOf(program.pid).connections <= after.connections - kept).catch(() =>
    problems.push("Connections to the backend are still open after it stopped"),
  );
  const cpuMs = program.cpuMs();
  // Measures the CPU of an idle program.
  await Bun.sleep(3000);
  const idleMs = program.cpuMs() - cpuMs;
  if (idleMs > 150) problems.push(`${idleMs} ms of CPU in three idle seconds`);
  print(
    `Open files ${before.files.length} before, ${after.files.length} after; kept connections ${after.connections}, ${kept} of them to the backend; idle CPU ${idleMs} ms in 3 s`,
  );
  return problems;
}

interface Growth {
  summary: string;
  problems: string[];
}

const megabyte = 1024 * 1024;

/** Samples resident memory once a second and compares the medians of ten seconds. */
function watchMemory(program: Program): { stop: () => Growth } {
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(program.rssBytes() / megabyte), 1000);
  const median = (part: number[]): number => part.toSorted((a, b) => a - b)[part.length >> 1] ?? 0;
  return {
    stop() {
      clearInterval(timer);
      const [first, last] = [median(samples.slice(55, 65)), median(samples.slice(-10))];
      const summary = `${first.toFixed(0)} MB after the first minute, ${last.toFixed(0)} MB at the end, ${Math.max(...samples).toFixed(0)} MB at most`;
      const grew = samples.length > 75 && last > first * 1.1;
      return { summary, problems: grew ? [`Memory grew: ${summary}`] : [] };
    },
  };
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

print(`Running for ${minutes} minutes with seed ${seed}`);
const problems = await soak();
for (const problem of problems) print(`PROBLEM ${problem}`);
print(problems.length === 0 ? "No problems" : `${problems.length} problems`);
process.exit(problems.length === 0 ? 0 : 1);
