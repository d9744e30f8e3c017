import { monitorEventLoopDelay } from "node:perf_hooks";
import { createLedger } from "../../src/ledger/ledger.ts";
import { createKeys, memoryLog, openTestStore } from "../store/test-store.ts";

/** Records usage events through ledger, Worker and disk, and measures event loop delays: `bun tests/bench/ledger.ts [seconds] [events per second]` */
const [seconds = "5", rate = "20000"] = process.argv.slice(2);
const keyCount = 200;
const tickMs = 5;

await using opened = await openTestStore();
await createKeys(
  opened.store,
  Array.from({ length: keyCount }, (_, n) => `key ${n}`),
);
const { entries, log } = memoryLog();
const ledger = createLedger({ store: opened.store.usage, clock: Date.now, log });

const committedMs: number[] = [];
let sent = 0;

async function record(): Promise<void> {
  const begun = performance.now();
  await ledger.record({ keyId: 1 + (sent++ % keyCount), closedAt: Date.now(), inputTokens: 1000, outputTokens: 100 });
  committedMs.push(performance.now() - begun);
}

const delay = monitorEventLoopDelay({ resolution: 1 });
delay.enable();
const begun = performance.now();
const pending: Promise<void>[] = [];
while (performance.now() - begun < Number(seconds) * 1000) {
  const due = ((performance.now() - begun) / 1000) * Number(rate);
  while (sent < due) pending.push(record());
  await Bun.sleep(tickMs);
}
await Promise.all(pending);
const tookMs = performance.now() - begun;
delay.disable();
await ledger.close();

const sorted = committedMs.toSorted((a, b) => a - b);
const at = (share: number) => (sorted[Math.floor(sorted.length * share)] ?? Number.NaN).toFixed(2);
const total = await opened.store.usage.sumOfKeys();
console.log(
  `${Math.round((sent / tookMs) * 1000)} usage events/s over ${keyCount} keys, for ${(tookMs / 1000).toFixed(1)} s`,
);
console.log(`committed after p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, at most ${at(0.99999)} ms`);
console.log(`event loop delay p50 ${ms(delay.percentile(50))}, p99 ${ms(delay.percentile(99))}, max ${ms(delay.max)}`);
console.log(`counted ${total.requestCount} of ${sent}; ${entries.length} log entries`);
process.exitCode = total.requestCount === sent ? 0 : 1;

function ms(nanoseconds: number): string {
  return `${(nanoseconds / 1e6).toFixed(2)} ms`;
}
