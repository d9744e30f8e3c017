/**
 * Receipts and key look-ups on both engines, by one process and by several that share one database, each with a ledger
 * and a store of its own as in the program. `bun run bench --only storage`
 */
import { createLedger } from "../../src/ledger.ts";
import { openStore } from "../../src/store/open.ts";
import { createKeys, memoryLog } from "../store/test-store.ts";
import { startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { markdownTable } from "./report.ts";

const keyCount = 200;
const callersPerProcess = 64;
const processCounts = [1, 2, 4];

/** Where the data is: a folder, or a PostgreSQL's address. */
interface Place {
  dataDir: string;
  databaseUrl?: string;
}

/** What one process did, or all of them together. */
interface Figures {
  receiptsPerSecond: number;
  /** How long one waited for its commit, all callers at work. */
  receiptMs: { p50: number; p99: number };
  /** The same with nobody else about. */
  loneReceiptMs: number;
  lookUpsPerSecond: number;
  loneLookUpMs: number;
}

/** A receipt that was acknowledged and is not in the sums, or the reverse. */
export class WrongSum extends Error {
  override name = "WrongSum";
}

/** @returns a table in Markdown @throws WrongSum */
export async function storageTable(seconds: number): Promise<string> {
  const columns: [name: string, figures: Figures][] = [];
  for (const count of processCounts) {
    using folder = createTempFolder();
    columns.push([`SQLite, ${count}`, await measureProcesses(count, seconds, { dataDir: folder.path })]);
  }
  if (whyNoPostgres === undefined) {
    // As it is installed: what it has said is on the disk.
    await using postgres = await startPostgres(["fsync=on"]);
    for (const count of processCounts) {
      const databaseUrl = await postgres.createDatabase();
      columns.push([`PostgreSQL, ${count}`, await measureProcesses(count, seconds, { dataDir: "", databaseUrl })]);
    }
  }
  const row = (name: string, of: (figures: Figures) => string): string[] => [
    name,
    ...columns.map(([, figures]) => of(figures)),
  ];
  const whole = (value: number): string => Math.round(value).toLocaleString("en");
  return markdownTable([
    ["processes", ...columns.map(([name]) => name)],
    row("receipts a second", (figures) => whole(figures.receiptsPerSecond)),
    row("until it is committed, p50 (ms)", ({ receiptMs }) => receiptMs.p50.toFixed(2)),
    row("until it is committed, p99 (ms)", ({ receiptMs }) => receiptMs.p99.toFixed(2)),
    row("a lone receipt, p50 (ms)", ({ loneReceiptMs }) => loneReceiptMs.toFixed(2)),
    row("key look-ups a second", (figures) => whole(figures.lookUpsPerSecond)),
    row("a lone look-up, p50 (ms)", ({ loneLookUpMs }) => loneLookUpMs.toFixed(3)),
  ]);
}

async function measureProcesses(count: number, seconds: number, place: Place): Promise<Figures> {
  const { log } = memoryLog();
  const store = await openStore({ ...place, clock: Date.now, log });
  const names = Array.from({ length: keyCount }, (_, index) => `key ${index}`);
  await createKeys(store, names);
  const shares = await Promise.all(Array.from({ length: count }, () => measureInProcess(seconds, place)));
  const { requestCount } = await store.usage.sumOfKeys();
  await store.close();
  const acknowledged = sumOf(shares, (share) => share.acknowledged);
  if (requestCount !== acknowledged) throw new WrongSum(`${acknowledged} were acknowledged, ${requestCount} are there`);
  const slowest = (of: (figures: Figures) => number): number => Math.max(...shares.map(of));
  return {
    receiptsPerSecond: sumOf(shares, (share) => share.receiptsPerSecond),
    receiptMs: { p50: slowest(({ receiptMs }) => receiptMs.p50), p99: slowest(({ receiptMs }) => receiptMs.p99) },
    loneReceiptMs: slowest(({ loneReceiptMs }) => loneReceiptMs),
    lookUpsPerSecond: sumOf(shares, (share) => share.lookUpsPerSecond),
    loneLookUpMs: slowest(({ loneLookUpMs }) => loneLookUpMs),
  };
}

const sumOf = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0);

interface Share extends Figures {
  acknowledged: number;
}

async function measureInProcess(seconds: number, place: Place): Promise<Share> {
  const child = Bun.spawn([process.execPath, import.meta.path, String(seconds), JSON.stringify(place)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  return (await new Response(child.stdout).json()) as Share;
}

/** What one of the processes does. */
async function measure(seconds: number, place: Place): Promise<Share> {
  const { log } = memoryLog();
  const clock = Date.now;
  const store = await openStore({ ...place, clock, log });
  const ledger = createLedger({ store: store.usage, clock, log });
  const record = (n: number): Promise<unknown> =>
    ledger.record({ keyId: 1 + (n % keyCount), closedAt: clock(), inputTokens: 1000, outputTokens: 100 });
  const find = async (n: number): Promise<unknown> => store.keys.findActive(`secret of key ${n % keyCount}`);
  const receipts = await rateOf(seconds, callersPerProcess, record);
  const loneReceipts = await rateOf(seconds, 1, record);
  await ledger.close();
  const lookUps = await rateOf(seconds, callersPerProcess, find);
  const loneLookUps = await rateOf(seconds, 1, find);
  await store.close();
  return {
    acknowledged: receipts.count + loneReceipts.count,
    receiptsPerSecond: receipts.perSecond,
    receiptMs: { p50: receipts.p50Ms, p99: receipts.p99Ms },
    loneReceiptMs: loneReceipts.p50Ms,
    lookUpsPerSecond: lookUps.perSecond,
    loneLookUpMs: loneLookUps.p50Ms,
  };
}

interface Rate {
  count: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
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
  const perSecond = (n / (performance.now() - begun)) * 1000;
  const sorted = tookMs.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.floor(sorted.length * share)] ?? Number.NaN;
  return { count: n, perSecond, p50Ms: at(0.5), p99Ms: at(0.99) };
}

if (import.meta.main) {
  const [seconds, place = ""] = process.argv.slice(2);
  process.stdout.write(JSON.stringify(await measure(Number(seconds), JSON.parse(place) as Place)));
}
