/**
 * Tollgate beside a direct connection, nginx and another gateway, on two cores of one machine: backend and load on the
 * first, what is measured on the second; then storage by itself.
 * `bun run bench [--quick] [--only NAME]... [--against NAME]... [--rounds N] [--out FILE.svg]`
 */
import { readFileSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { createTempFolder } from "../support/temp-folder.ts";
import {
  type Contestant,
  nginxProgram,
  type Stage,
  type Start,
  startBackend,
  startFloor,
  startNginx,
  startNginxWithKeys,
  startPortkey,
  startTollgate,
} from "./contestants.ts";
import { createKeys, measureOnce, warmUp, WrongCount } from "./measure.ts";
import { isMeasuredBy, type Measure, measures, type Run } from "./measures.ts";
import { installPortkey, portkeyVersion } from "./portkey.ts";
import { loadCore, pinToCore, residentMb } from "./processes.ts";
import { markdownOf, type Row, rowsOf, svgOf } from "./report.ts";
import { storageTable, WrongSum } from "./storage.ts";

const { values: options } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    only: { type: "string", multiple: true, default: [] },
    rounds: { type: "string" },
    against: { type: "string", multiple: true, default: [] },
    out: { type: "string" },
  },
});
const rounds = Number(options.rounds ?? (options.quick ? 3 : 5));
const warmUps = 1;
/** What a start needed for a moment is given back by then. */
const settleMs = 5000;
const restMs = 60_000;
const storageSeconds = 3;
const isWhole = !options.quick && options.only.length === 0 && options.against.length === 0;

async function main(): Promise<void> {
  const tables = options.only.filter((name) => name !== "storage");
  // Before anything is pinned: its processes have the whole machine.
  const storage = tables.length < options.only.length || isWhole ? await storageTable(storageSeconds) : "";
  if (tables.length > 0 || options.only.length === 0) await compare();
  if (storage !== "") console.log(storage);
}

async function compare(): Promise<void> {
  pinToCore(process.pid, loadCore);
  using folder = createTempFolder();
  const backend = await startBackend(folder.path, 0);
  const stage: Stage = { folder: folder.path, key: `sk-bench-${crypto.randomUUID()}`, backendPort: backend.port };
  const contestants = [backend];
  try {
    for (const start of await listStarts(folder.path)) contestants.push(await start(stage));
    await Bun.sleep(settleMs);
    const idle = new Map(contestants.map(({ name, process: { pid } }) => [name, residentMb(pid)]));
    if (!options.quick) await warmUpAll(contestants, stage.key);
    const rows: Row[] = [];
    for (const measure of chosenMeasures()) rows.push(...rowsOf(measure, await runAll(measure, contestants, stage)));
    rows.push({ measure: "idle, just started", figure: "memory", unit: "MB", values: idle });
    if (isWhole) rows.push(await memoryAfterRest(contestants));
    publish(rows, contestants);
  } finally {
    for (const { process: started } of contestants.toReversed()) await started.stop();
  }
}

async function listStarts(folder: string): Promise<Start[]> {
  const portkey = await installPortkey(folder);
  const starts: Record<string, Start> = {
    nginx: startNginx,
    "nginx-keys": startNginxWithKeys,
    tollgate: startTollgate,
    ...(portkey === undefined ? {} : { portkey: startPortkey(portkey) }),
    passthrough: startFloor("passthrough"),
    transform: startFloor("transform"),
  };
  const chosen = Object.entries(starts).filter(
    ([name]) => options.against.length === 0 || options.against.includes(name),
  );
  return chosen.map(([, start]) => start);
}

function chosenMeasures(): Measure[] {
  const { only, quick } = options;
  if (only.length > 0) return measures.filter(({ name }) => only.includes(name));
  return measures.filter((measure) => measure.quick || !quick);
}

async function warmUpAll(contestants: readonly Contestant[], key: string): Promise<void> {
  const measure = measures.find(({ name }) => name === "small-32");
  if (measure !== undefined) for (const contestant of contestants) await warmUp(measure, contestant, key);
}

/** All contestants in turn, again and again, so that a neighbour's load falls on each alike. */
async function runAll(measure: Measure, contestants: readonly Contestant[], stage: Stage): Promise<Map<string, Run[]>> {
  const runs = new Map<string, Run[]>();
  const entered = contestants.filter((contestant) => isMeasuredBy(measure, contestant));
  for (let round = -warmUps; round < rounds; round++) {
    for (const contestant of entered) {
      const keys = measure.keys === undefined ? [stage.key] : await manyKeys(contestant, measure.keys);
      const run = await measureOnce(measure, contestant, keys);
      if (round >= 0) runs.set(contestant.name, [...(runs.get(contestant.name) ?? []), run]);
    }
  }
  console.error(`${measure.title}: done`);
  return runs;
}

const created = new Map<Contestant, Promise<string[]>>();

function manyKeys(contestant: Contestant, count: number): Promise<string[]> {
  const keys = created.get(contestant) ?? createKeys(contestant, count);
  created.set(contestant, keys);
  return keys;
}

async function memoryAfterRest(contestants: readonly Contestant[]): Promise<Row> {
  await Bun.sleep(restMs);
  const values = new Map(contestants.map(({ name, process: { pid } }) => [name, residentMb(pid)]));
  return { measure: "idle, a minute after all loads", figure: "memory", unit: "MB", values };
}

function publish(rows: readonly Row[], contestants: readonly Contestant[]): void {
  const report = { rows, contestants: contestants.map(({ name }) => name), conditions: conditions() };
  console.log(markdownOf(report));
  if (options.out !== undefined) writeFileSync(options.out, svgOf(report));
}

function conditions(): string {
  const nginx = Bun.spawnSync([nginxProgram, "-v"]).stderr.toString().trim().split("/").at(-1) ?? "unknown";
  const [processor] = cpus();
  const load = readFileSync("/proc/loadavg", "utf8").split(" ", 1)[0];
  return (
    `${new Date().toISOString().slice(0, 10)}; Bun ${Bun.version}, nginx ${nginx}, Portkey ${portkeyVersion}; ` +
    `${cpus().length} cores of ${processor?.model ?? "unknown"}, load ${load}; medians of ${rounds}. ` +
    "Absolute numbers are this machine's."
  );
}

// What was started is killed as this process exits, which a signal alone would not let it do.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));

await main().catch((error: unknown) => {
  if (!(error instanceof WrongCount || error instanceof WrongSum)) throw error;
  console.error(error.message);
  process.exitCode = 1;
});
process.exit();
