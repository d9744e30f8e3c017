/**
 * Compares Tollgate with a direct connection, nginx, another gateway and a bare Bun server on two cores of one machine, and
 * measures storage. Writes BENCHMARKS.md, bench.svg and benchmarks.json.
 * Busbar and GoModel, which no package registry has, are measured too if BENCH_BUSBAR and BENCH_GOMODEL name their binaries.
 * `bun run bench [--quick] [--only NAME]... [--against NAME]... [--growing NAME]... [--rounds N]
 * [--out FOLDER]`
 * --only: these workloads, `storage` and `console`; the other figures of the page stay. --quick and --against only print.
 * --only guard: prints what Tollgate costs relative to a bare Bun server, its page faults and context switches, and, where the
 * kernel counts them for `perf`, instructions. Exits with 1 if one is over its budget in CONTRIBUTING. Takes five minutes.
 * --only growth: whether a request costs the same as what is stored and open grows; exits with 1 if not. Takes ten minutes,
 * or two for each `--growing NAME`, a name of growth.ts.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createTempFolder } from "../support/temp-folder.ts";
import { svgChart } from "./chart.ts";
import { peers, versionOf } from "./peers.ts";
import { hasBrowser } from "../browser/support/console-under-test.ts";
import { measureConsole, rounds as consoleRounds } from "./console.ts";
import { guarded, guardTable, instructionsLine, isSlower, measure, withBudgets } from "./guard.ts";
import { loadCore, pinToCore, residentMb } from "./processes.ts";
import {
  type Beside,
  besideRow,
  besides,
  growing,
  type Growing,
  growthRow,
  isSlow,
  isSteep,
  startGrown,
  startTwins,
} from "./growth.ts";
import { benchmarksPage, resultTables } from "./report.ts";
import {
  type BesideRow,
  type ConsoleResults,
  type GrowthResults,
  type GrowthRow,
  mergeGrowth,
  mergeRows,
  readResults,
  type Results,
  type Row,
  rowsOf,
  type StorageResults,
} from "./results.ts";
import { createKeys, runWorkload, warmUp, WrongCount } from "./run-workload.ts";
import { measureStorage, WrongSum } from "./storage.ts";
import {
  type Bench,
  benchFolder,
  nginxProgram,
  startBackend,
  startBareServer,
  startNginx,
  startNginxWithKeys,
  type StartTarget,
  startTollgate,
  type Target,
} from "./targets.ts";
import { appliesTo, type Run, small, warmingUp, type Workload, workloads } from "./workloads.ts";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    rounds: { type: "string" },
    against: { type: "string", multiple: true, default: [] },
    growing: { type: "string", multiple: true, default: [] },
    out: { type: "string", default: join(benchFolder, "../../.github") },
  },
});
const rounds = Number(options.rounds ?? (options.quick ? 3 : 5));
/** Time for targets to release what they needed only to start. */
const settleMs = 5000;
const restMs = 60_000;
/** A shorter one of over 1.5 s costs 25 µs more: Tollgate then uses no idle connection, as many backends are about to close it. */
const pauseMs = 8500;
const storageSeconds = 3;
const isFiltered = options.only.length > 0;
/** Figures of fewer rounds or targets do not belong on the page. */
const isPrintedOnly = options.quick || options.against.length > 0;
const isWhole = !isFiltered && !isPrintedOnly;

async function main(): Promise<void> {
  if (options.only.includes("guard")) {
    const measured = await withBudgets(await measureGuarded());
    console.log(guardTable(measured));
    if (measured.some(isSlower)) process.exitCode = 1;
    return;
  }
  // `console` is the pages of the console, not the streams beside it.
  const chosen = options.only.filter((name) => name !== "console" && workloads.some((one) => one.name === name));
  // First, because their processes use the whole machine and this one is pinned to a core later.
  const storage = isWhole || options.only.includes("storage") ? await storageResults() : undefined;
  const ofConsole = (isWhole && hasBrowser) || options.only.includes("console") ? await consoleResults() : undefined;
  const rows = chosen.length > 0 || !isFiltered ? await compareTargets() : [];
  const growth = isWhole || options.only.includes("growth") ? await growthResults() : undefined;
  const measured: Results = { rows, storage, console: ofConsole, growth };
  if (isPrintedOnly) process.stdout.write(resultTables(measured));
  else publish(measured);
  if (growth?.rows.some(isSteep) === true || growth?.beside?.some(isSlow) === true) process.exitCode = 1;
}

async function growthResults(): Promise<GrowthResults> {
  const rows: GrowthRow[] = [];
  const chosen = growing.filter(({ name }) => options.growing.length === 0 || options.growing.includes(name));
  for (const kind of chosen) rows.push(await measureGrowth(kind));
  const beside: BesideRow[] = [];
  const chosenBeside = besides.filter(({ name }) => options.growing.length === 0 || options.growing.includes(name));
  if (chosenBeside.length > 0) {
    await withTargets([], async (_, bench) => {
      for (const one of chosenBeside) beside.push(await measureBeside(one, bench));
    });
  }
  return { conditions: describeConditions(), rows, beside };
}

/** Both in turn: the one that is not measured is stopped. */
async function measureBeside(kind: Beside, bench: Bench): Promise<BesideRow> {
  const workload = workloads.find(({ name }) => name === "rate") ?? small;
  const { without, beside, begin } = await startTwins(bench, kind);
  const runs = new Map<string, Run[]>([without, beside].map(({ name }) => [name, []]));
  try {
    await warmUpAll([without, beside], bench.key);
    for (let round = 0; round < rounds; round++) {
      for (const target of [without, beside]) {
        const other = target === beside ? without : beside;
        process.kill(other.process.pid, "SIGSTOP");
        process.kill(target.process.pid, "SIGCONT");
        await Bun.sleep(pauseMs);
        const end = target === beside ? begin() : undefined;
        const { admin: _, ...plain } = target;
        runs.get(target.name)?.push(await runWorkload(workload, plain, [bench.key]));
        await end?.();
      }
    }
    return besideRow(kind, workload, runs);
  } finally {
    for (const { process: one } of [without, beside]) {
      process.kill(one.pid, "SIGCONT");
      await one.stop();
    }
  }
}

/** Of each kind all sizes at once, so that other load on the machine affects all of them. */
const measureGrowth = (kind: Growing): Promise<GrowthRow> =>
  withTargets([], async (_, bench) => {
    const keys = new Map<Target, readonly string[]>();
    try {
      for (const size of kind.sizes) {
        const started = await startGrown(bench, kind, size);
        keys.set(started.target, started.keys);
      }
      const targets = [...keys.keys()];
      await warmUpAll(targets, bench.key);
      const workload = kind.bodies === undefined ? small : { ...small, load: { ...small.load, body: kind.bodies } };
      const runs = await runAll(workload, targets, async (target) => keys.get(target) ?? []);
      return growthRow(kind, small, [...runs.values()]);
    } finally {
      for (const { process: started } of keys.keys()) await started.stop();
    }
  });

async function storageResults(): Promise<StorageResults> {
  const columns = await measureStorage(storageSeconds);
  return { conditions: `${today()}; Bun ${Bun.version}; ${machine()}; ${storageSeconds} s for each figure`, columns };
}

async function consoleResults(): Promise<ConsoleResults> {
  const rows = await measureConsole();
  return { conditions: `${today()}; Bun ${Bun.version}; ${machine()}; medians of ${consoleRounds}`, rows };
}

/** @param act gets the backend too, as the target of whoever asks it directly */
async function withTargets<T>(
  starts: readonly StartTarget[],
  act: (targets: readonly Target[], bench: Bench) => Promise<T>,
): Promise<T> {
  pinToCore(process.pid, loadCore);
  using folder = createTempFolder();
  const backend = await startBackend(folder.path, 0);
  const bench: Bench = { folder: folder.path, key: `sk-bench-${crypto.randomUUID()}`, backendPort: backend.port };
  const targets = [backend];
  try {
    for (const start of starts) targets.push(await start(bench));
    await Bun.sleep(settleMs);
    return await act(targets, bench);
  } finally {
    for (const { process: started } of targets.toReversed()) await started.stop();
  }
}

const compareTargets = (): Promise<Row[]> =>
  withTargets(listStarts(), async (targets, bench) => {
    const idle = memoryOf(targets);
    const conditions = describeConditions();
    if (!options.quick) await warmUpAll(targets, bench.key);
    const rows: Row[] = [];
    for (const workload of chosenWorkloads()) {
      rows.push(...rowsOf(workload, await runAll(workload, targets, keysFor(workload, bench)), conditions));
    }
    if (!isFiltered) rows.push({ workload: "idle, just started", ...memoryFigure, conditions, values: idle });
    if (isWhole) {
      await Bun.sleep(restMs);
      const values = memoryOf(targets);
      rows.push({ workload: "idle, a minute after all loads", ...memoryFigure, conditions, values });
    }
    return rows;
  });

const measureGuarded = (): Promise<Map<string, number>> =>
  withTargets([startTollgate, startBareServer("passthrough"), startBareServer("transform")], async (targets, bench) => {
    const [, tollgate, ...bare] = targets;
    await warmUpAll(targets.slice(1), bench.key);
    const measured = new Map<string, number>();
    for (const workload of workloads) {
      const other = bare.find(({ name }) => name === guarded[workload.name]);
      if (tollgate === undefined || other === undefined) continue;
      const compared = [tollgate, other];
      const runs = await runAll(workload, compared, keysFor(workload, bench));
      const [ours = [], others = []] = compared.map(({ name }) => runs.get(name));
      for (const [name, value] of measure(workload, other.name, ours, others)) measured.set(name, value);
      console.log(instructionsLine(workload, ours, others));
    }
    return measured;
  });

const memoryFigure = { figure: "memory", unit: "MB" } as const;

const memoryOf = (targets: readonly Target[]): Record<string, number> =>
  Object.fromEntries(targets.map(({ name, process: { pid } }) => [name, residentMb(pid)]));

function listStarts(): StartTarget[] {
  const starts: Record<string, StartTarget> = {
    nginx: startNginx,
    "nginx-keys": startNginxWithKeys,
    tollgate: startTollgate,
    ...Object.fromEntries(peers.map(({ name, start }) => [name.toLowerCase(), start])),
    passthrough: startBareServer("passthrough"),
    transform: startBareServer("transform"),
  };
  const chosen = Object.entries(starts).filter(
    ([name]) => options.against.length === 0 || options.against.includes(name),
  );
  return chosen.map(([, start]) => start);
}

function chosenWorkloads(): Workload[] {
  const { only, quick } = options;
  if (isFiltered) return workloads.filter(({ name }) => only.includes(name));
  return workloads.filter((workload) => workload.quick || !quick);
}

async function warmUpAll(targets: readonly Target[], key: string): Promise<void> {
  for (const target of targets) {
    for (const one of warmingUp.filter((workload) => appliesTo(workload, target))) {
      await warmUp(one, target, target.key ?? key);
    }
  }
}

type KeysOf = (target: Target) => Promise<readonly string[]>;

const keysFor =
  ({ keys }: Workload, bench: Bench): KeysOf =>
  async (target) =>
    keys === undefined ? [target.key ?? bench.key] : await manyKeys(target, keys);

/** Runs all targets in turn in each round, so that other load on the machine affects all of them. */
async function runAll(workload: Workload, targets: readonly Target[], keysOf: KeysOf): Promise<Map<string, Run[]>> {
  const runs = new Map<string, Run[]>();
  const included = targets.filter((target) => appliesTo(workload, target));
  const endedAt = new Map<Target, number>();
  for (const target of included) {
    // Tens of thousands of agents' bodies, until what runs for them is compiled; a round has hundreds.
    const [key = ""] = await keysOf(target);
    await warmUp(workload, target, key);
    endedAt.set(target, performance.now());
  }
  for (let round = 0; round < rounds; round++) {
    for (const target of included) {
      await Bun.sleep(Math.max(0, (endedAt.get(target) ?? -Infinity) + pauseMs - performance.now()));
      const run = await runWorkload(workload, target, await keysOf(target));
      endedAt.set(target, performance.now());
      runs.set(target.name, [...(runs.get(target.name) ?? []), run]);
    }
  }
  console.error(`${workload.title}: done`);
  return runs;
}

const createdKeys = new Map<Target, Promise<string[]>>();

function manyKeys(target: Target, count: number): Promise<string[]> {
  const keys = createdKeys.get(target) ?? createKeys(target, count);
  createdKeys.set(target, keys);
  return keys;
}

/** A whole run replaces all figures, one of single workloads only theirs. */
function publish(measured: Results): void {
  const folder = options.out;
  mkdirSync(folder, { recursive: true });
  const resultsFile = join(folder, "benchmarks.json");
  const earlier = readResults(resultsFile);
  const results: Results = {
    rows: mergeRows(isWhole ? [] : earlier.rows, measured.rows),
    storage: measured.storage ?? earlier.storage,
    console: measured.console ?? earlier.console,
    growth: mergeGrowth(earlier.growth, measured.growth),
  };
  writeFileSync(resultsFile, `${JSON.stringify(results, undefined, 2)}\n`);
  writeFileSync(join(folder, "bench.svg"), svgChart(results.rows));
  const pageFile = join(folder, "BENCHMARKS.md");
  writeFileSync(pageFile, benchmarksPage(results, readFileSync(join(benchFolder, "profile.md"), "utf8")));
  console.error(`Wrote ${pageFile}`);
}

function describeConditions(): string {
  const nginx = Bun.spawnSync([nginxProgram, "-v"]).stderr.toString().trim().split("/").at(-1) ?? "unknown";
  const load = readFileSync("/proc/loadavg", "utf8").split(" ", 1)[0];
  const versions = [`Bun ${Bun.version}`, `nginx ${nginx}`];
  versions.push(...peers.map(({ name, program }) => `${name} ${versionOf(program)}`));
  return `${today()}; ${versions.join(", ")}; ${machine()}, load ${load}; medians of ${rounds}`;
}

const today = (): string => new Date().toISOString().slice(0, 10);

const machine = (): string => `${cpus().length} cores of ${cpus()[0]?.model ?? "unknown"}`;

// Started programs are killed when this process exits, which does not happen on a signal by itself.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

/** What `--only` takes. */
const names: readonly string[] = [...workloads.map(({ name }) => name), "storage", "guard", "growth"];
const unknown = options.only.find((name) => !names.includes(name));
if (unknown !== undefined) {
  console.error(`--only: ${unknown} is not one of ${names.join(", ")}`);
  process.exit(2);
}

await main().catch((error: unknown) => {
  if (!(error instanceof WrongCount || error instanceof WrongSum)) throw error;
  console.error(error.message);
  process.exitCode = 1;
});
process.exit();
