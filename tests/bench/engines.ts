import { createLedger } from "../../src/ledger.ts";
import { openStore } from "../../src/store/open.ts";
import { startPostgres } from "../support/postgres.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { memoryLog } from "../store/test-store.ts";

/**
 * Receipts and key look-ups a second on SQLite, on PostgreSQL, and from two instances on one PostgreSQL; each instance is
 * a process. Usage: `bun tests/bench/engines.ts [seconds]`
 */
const keyCount = 200;
const recordsAtOnce = 256;
const lookUpsAtOnce = 64;

interface Rate {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

interface Measured {
  receipts: Rate;
  loneReceipts: Rate;
  lookUps: Rate;
  loneLookUps: Rate;
}

/** Keeps `atOnce` of it under way for a while. */
async function rateOf(seconds: number, atOnce: number, act: (n: number) => Promise<unknown>): Promise<Rate> {
  const tookMs: number[] = [];
  const begun = performance.now();
  let n = 0;
  const actor = async (): Promise<void> => {
    while (performance.now() - begun < seconds * 1000) {
      const start = performance.now();
      await act(n++);
      tookMs.push(performance.now() - start);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, actor));
  const perSecond = Math.round((n / (performance.now() - begun)) * 1000);
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): number => Number((sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(3));
  return { perSecond, p50Ms: at(0.5), p99Ms: at(0.99) };
}

/** As one instance: on PostgreSQL where there is an address, else on SQLite. */
async function measure(seconds: number, databaseUrl: string | undefined): Promise<Measured> {
  using folder = createTempFolder();
  const { log } = memoryLog();
  const clock = Date.now;
  const store = await openStore({ dataDir: folder.path, databaseUrl, clock, log });
  for (let n = 1; n <= keyCount; n++) await store.keys.create({ name: `key ${n}`, key: `secret ${n}`, createdAt: 0 });
  const ledger = createLedger({ store: store.usage, clock, log });
  const record = (n: number) =>
    ledger.record({ keyId: 1 + (n % keyCount), closedAt: clock(), inputTokens: 1000, outputTokens: 100 });
  const receipts = await rateOf(seconds, recordsAtOnce, record);
  const loneReceipts = await rateOf(seconds, 1, record);
  await ledger.close();
  const find = async (n: number) => store.keys.findActive(`secret ${1 + (n % keyCount)}`);
  const lookUps = await rateOf(seconds, lookUpsAtOnce, find);
  const loneLookUps = await rateOf(seconds, 1, find);
  await store.close();
  return { receipts, loneReceipts, lookUps, loneLookUps };
}

async function measureInProcesses(instances: number, seconds: number, databaseUrl = ""): Promise<Measured[]> {
  const runs = Array.from({ length: instances }, async () => {
    const child = Bun.spawn([process.execPath, import.meta.path, String(seconds), "instance", databaseUrl], {
      stdout: "pipe",
    });
    return (await new Response(child.stdout).json()) as Measured;
  });
  return Promise.all(runs);
}

function show(what: string, measured: readonly Measured[]): void {
  for (const kind of ["receipts", "loneReceipts", "lookUps", "loneLookUps"] as const) {
    const rates = measured.map((one) => one[kind]);
    const perSecond = rates.reduce((sum, rate) => sum + rate.perSecond, 0);
    const slowest = (of: "p50Ms" | "p99Ms"): number => Math.max(...rates.map((rate) => rate[of]));
    console.log(
      `${what.padEnd(26)} ${kind.padEnd(12)} ${String(perSecond).padStart(8)} /s   p50 ${slowest("p50Ms")} ms   p99 ${slowest("p99Ms")} ms`,
    );
  }
}

const [seconds = "3", role, databaseUrl = ""] = process.argv.slice(2);
if (role === "instance") {
  const measured = await measure(Number(seconds), databaseUrl === "" ? undefined : databaseUrl);
  process.stdout.write(JSON.stringify(measured));
} else {
  show("SQLite", await measureInProcesses(1, Number(seconds)));
  // As it is installed: what it has said is on the disk.
  const postgres = await startPostgres(["fsync=on"]);
  show("PostgreSQL", await measureInProcesses(1, Number(seconds), await postgres.createDatabase()));
  show("PostgreSQL, 2 instances", await measureInProcesses(2, Number(seconds), await postgres.createDatabase()));
  await postgres[Symbol.asyncDispose]();
}
