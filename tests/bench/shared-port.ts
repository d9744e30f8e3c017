import { startSimulator } from "../../src/simulator/simulator.ts";
import { createLedger } from "../../src/ledger.ts";
import { openStore } from "../../src/store/open.ts";
import { createKeys, memoryLog } from "../store/test-store.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";
import { until } from "../support/until.ts";

/**
 * What several processes on one SQLite file bring: receipts a second straight into their ledgers, and small requests a
 * second through the program. Everything shares the cores of one machine, the backend and the clients too.
 * Usage: `bun tests/bench/shared-port.ts [seconds] [processes,...]`
 */
const [mode = "3", second = "1,2,4", third] = process.argv.slice(2);
const keyCount = 200;
const callersPerProcess = 64;
const clients = 64;

interface Share {
  acknowledgedMs: number[];
  warnings: number;
}

if (mode === "record") {
  await Bun.write(Bun.stdout, JSON.stringify(await recordReceipts(second, Number(third))));
  process.exit(0);
}
const seconds = Number(mode);
for (const count of second.split(",").map(Number)) {
  await benchReceipts(count);
  await benchRequests(count);
}
process.exit(0);

/** As many callers as `callersPerProcess`, each with one receipt under way at a time. */
async function recordReceipts(dataDir: string, forSeconds: number): Promise<Share> {
  const { entries, log } = memoryLog();
  const store = await openStore({ dataDir, clock: Date.now, log });
  const ledger = createLedger({ store: store.usage, clock: Date.now, log });
  const acknowledgedMs: number[] = [];
  const end = performance.now() + forSeconds * 1000;
  const record = async (): Promise<void> => {
    while (performance.now() < end) {
      const begun = performance.now();
      const keyId = 1 + (acknowledgedMs.length % keyCount);
      await ledger.record({ keyId, closedAt: Date.now(), inputTokens: 1000, outputTokens: 100 });
      acknowledgedMs.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: callersPerProcess }, record));
  await ledger.close();
  await store.close();
  return { acknowledgedMs, warnings: entries.length };
}

async function benchReceipts(count: number): Promise<void> {
  using folder = createTempFolder();
  const { log } = memoryLog();
  const store = await openStore({ dataDir: folder.path, clock: Date.now, log });
  await createKeys(
    store,
    Array.from({ length: keyCount }, (_, n) => `key ${n}`),
  );
  const shares = await Promise.all(
    Array.from({ length: count }, async (): Promise<Share> => {
      const command = [process.execPath, import.meta.path, "record", folder.path, String(seconds)];
      return new Response(Bun.spawn(command, { stdout: "pipe", stderr: "inherit" }).stdout).json();
    }),
  );
  const all = shares.flatMap(({ acknowledgedMs }) => acknowledgedMs);
  const warnings = shares.reduce((sum, share) => sum + share.warnings, 0);
  const { requestCount } = await store.usage.sumOfKeys();
  await store.close();
  console.log(`${count} processes: ${Math.round(all.length / seconds)} receipts/s, acknowledged after ${spread(all)}`);
  console.log(`  counted ${requestCount} of ${all.length}; ${warnings} log entries`);
}

async function benchRequests(count: number): Promise<void> {
  using backend = startSimulator({ recordRequests: 0 });
  const program = await startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    ADMIN_PASSWORD: "password",
    PROCESSES: String(count),
    METRICS_TOKEN: "bench",
    LOG_LEVEL: "warn",
  });
  const headers = { authorization: "Bearer bench" };
  const scrape = async () => (await fetch(`${program.adminUrl}/metrics`, { headers })).text();
  await until(async () => (await scrape()).includes(`\ntollgate_processes ${count}\n`));
  const admin = await logIn(program.adminUrl, "admin", "password");
  const { key } = await admin.createKey("bench");
  const tookMs: number[] = [];
  const end = performance.now() + seconds * 1000;
  const talk = async (): Promise<void> => {
    while (performance.now() < end) {
      const begun = performance.now();
      const response = await fetch(`${program.url}/v1/chat/completions`, {
        method: "POST",
        headers: { "x-api-key": key, "content-type": "application/json" },
        body: `{"model":"m","max_tokens":4,"messages":[{"role":"user","content":"Hi"}]}`,
      });
      await response.arrayBuffer();
      tookMs.push(performance.now() - begun);
    }
  };
  await Promise.all(Array.from({ length: clients }, talk));
  const [listed] = await admin.listKeys();
  await program.stop();
  console.log(`  ${Math.round(tookMs.length / seconds)} requests/s, answered after ${spread(tookMs)}`);
  console.log(`  counted ${listed?.total_request_count} of ${tookMs.length}`);
}

function spread(ms: number[]): string {
  const sorted = ms.toSorted((a, b) => a - b);
  const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(1);
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(0.99999)} ms`;
}
