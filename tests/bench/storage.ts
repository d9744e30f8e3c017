/**
 * Usage events and key look-ups on both engines, from one process and from several that share one database. Each has its
 * own ledger and store, as in the program. `bun run bench --only storage`
 */
import { createLedger } from "../../src/ledger/ledger.ts";
import { openStore } from "../../src/store/open.ts";
import { createKeys, memoryLog } from "../store/test-store.ts";
import { startPostgres, whyNoPostgres } from "../support/postgres.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import type { StorageFigures, StorageResults } from "./results.ts";

const keyCount = 200;
const callersPerProcess = 64;
const processCounts = [1, 2, 4];

/** A folder for SQLite, or the address of a PostgreSQL database. */
interface Database {
  dataDir: string;
  databaseUrl?: string;
}

/** The sum in the database differs from the number of committed usage events. */
export class WrongSum extends Error {
  override name = "WrongSum";
}

/** @throws WrongSum */
export async function measureStorage(seconds: number): Promise<StorageResults["columns"]> {
  const columns: StorageResults["columns"][number][] = [];
  for (const processes of processCounts) {
    using folder = createTempFolder();
    const figures = await measureProcesses(processes, seconds, { dataDir: folder.path });
    columns.push({ engine: "SQLite", processes, figures });
  }
  if (whyNoPostgres === undefined) {
    // With fsync, as in production.
    await using postgres = await startPostgres(["fsync=on"]);
    for (const processes of processCounts) {
      const databaseUrl = await postgres.createDatabase();
      const figures = await measureProcesses(processes, seconds, { dataDir: "", databaseUrl });
      columns.push({ engine: "PostgreSQL", processes, figures });
    }
  }
  return columns;
}

async function measureProcesses(count: number, seconds: number, database: Database): Promise<StorageFigures> {
  const { log } = memoryLog();
  const store = await openStore({ ...database, clock: Date.now, log });
  const names = Array.from({ length: keyCount }, (_, index) => `key ${index}`);
  await createKeys(store, names);
  const shares = await Promise.all(Array.from({ length: count }, () => measureInProcess(seconds, database)));
  const { requestCount } = await store.usage.sumOfKeys();
  await store.close();
  const committed = sumOf(shares, (share) => share.committed);
  if (requestCount !== committed)
    throw new WrongSum(`${committed} usage events were committed, ${requestCount} are in the database`);
  const slowest = (of: (figures: StorageFigures) => number): number => Math.max(...shares.map(of));
  return {
    eventsPerSecond: sumOf(shares, (share) => share.eventsPerSecond),
    commitMs: { p50: slowest(({ commitMs }) => commitMs.p50), p99: slowest(({ commitMs }) => commitMs.p99) },
    singleCommitMs: slowest(({ singleCommitMs }) => singleCommitMs),
    lookUpsPerSecond: sumOf(shares, (share) => share.lookUpsPerSecond),
    singleLookUpMs: slowest(({ singleLookUpMs }) => singleLookUpMs),
  };
}

const sumOf = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((sum, item) => sum + of(item), 0);

interface Share extends StorageFigures {
  committed: number;
}

async function measureInProcess(seconds: number, database: Database): Promise<Share> {
  const child = Bun.spawn([process.execPath, import.meta.path, String(seconds), JSON.stringify(database)], {
    stdout: "pipe",
    stderr: "inherit",
  });
  return (await new Response(child.stdout).json()) as Share;
}

/** The work of one process. */
async function measure(seconds: number, database: Database): Promise<Share> {
  const { log } = memoryLog();
  const clock = Date.now;
  const store = await openStore({ ...database, clock, log });
  const ledger = createLedger({ store: store.usage, clock, log });
  const record = (n: number): Promise<unknown> =>
    ledger.record({ keyId: 1 + (n % keyCount), closedAt: clock(), inputTokens: 1000, outputTokens: 100 });
  const find = async (n: number): Promise<unknown> => store.keys.findActive(`secret of key ${n % keyCount}`);
  const events = await rateOf(seconds, callersPerProcess, record);
  const singleEvents = await rateOf(seconds, 1, record);
  await ledger.close();
  const lookUps = await rateOf(seconds, callersPerProcess, find);
  const singleLookUps = await rateOf(seconds, 1, find);
  await store.close();
  return {
    committed: events.count + singleEvents.count,
    eventsPerSecond: events.perSecond,
    commitMs: { p50: events.p50Ms, p99: events.p99Ms },
    singleCommitMs: singleEvents.p50Ms,
    lookUpsPerSecond: lookUps.perSecond,
    singleLookUpMs: singleLookUps.p50Ms,
  };
}

interface Rate {
  count: number;
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** Runs `act` for a while with a constant number of concurrent calls. */
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
  const [seconds, database = ""] = process.argv.slice(2);
  process.stdout.write(JSON.stringify(await measure(Number(seconds), JSON.parse(database) as Database)));
}
