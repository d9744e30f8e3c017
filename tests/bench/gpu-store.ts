import { sql } from "drizzle-orm";
import { openTestEngine, readReport } from "../store/test-store.ts";
import type { GpuReading } from "../../src/domain/gpu.ts";

/**
 * Ingest and queries on a database file with days of samples at 1 Hz: `bun tests/bench/gpu-store.ts [days]`. The default
 * is 0.25 days; the full size is 7 days, which are 38.7 million rows and about 3 GB.
 */
const days = Number(process.argv[2] ?? "0.25");
const gpuCount = 64;
const rounds = 500;
const seconds = Math.round(days * 86_400);
const now = Date.now();
const first = now - seconds * 1000;
// Expired samples are deleted during the measurement, as in production.
let recordedAt = first + 7 * 86_400_000 + 1000;
const newestMinute = Math.floor(recordedAt / 60_000);

await using opened = await openTestEngine(() => recordedAt);
const { engine, store } = opened;
const filling = performance.now();
// SQLite itself generates the rows that the ingest would write, one hour at a time.
for (let from = 0; from < seconds; from += 3600) {
  const to = Math.min(from + 3600, seconds);
  await engine.rows(sql`insert into gpu_samples
    with recursive second(s) as (select ${from} union all select s + 1 from second where s + 1 < ${to}),
      gpu(g) as (select 0 union all select g + 1 from gpu where g + 1 < ${gpuCount})
    select (${first} + s * 1000) * 256 + g, 'NVIDIA H200', 300 + (s + g) % 400, 60, 100000, 143771, 97 from second, gpu`);
}
const minutes = sql`minute(m) as (select ${newestMinute - 43_200} union all select m + 1 from minute where m < ${newestMinute - 1})`;
await engine.rows(sql`insert into gpu_power_minute
  with recursive ${minutes} select m, 20000 + m % 9000, 19000.5 + m % 9000 from minute`);
const sums = sql`60.0 * (300 + (m + g) % 400), 60, 700, 500, 3600, 60, 61, 60, 6e6, 60, 100000, 100000, 5820, 60, 99, 97`;
await engine.rows(sql`insert into gpu_minute
  with recursive ${minutes}, gpu(g) as (select 0 union all select g + 1 from gpu where g + 1 < ${gpuCount})
  select m, g, ${sums} from minute, gpu`);
await engine.rows(sql`insert into gpu_hour
  with recursive ${minutes}, gpu(g) as (select 0 union all select g + 1 from gpu where g + 1 < ${gpuCount})
  select m / 60, g, ${sums} from minute, gpu where m % 60 = 0 and m / 60 < ${Math.floor(newestMinute / 60) - 1}`);
const [count] = await engine.rows<{ n: number }>(sql`select count(*) as n from gpu_samples`);
console.log(`${count?.n} samples, generated in ${((performance.now() - filling) / 1000).toFixed(1)} s`);

const readings = Array.from({ length: gpuCount }, (_, gpuId): GpuReading => ({
  gpuId,
  name: "NVIDIA H200",
  powerDrawW: 650.5,
  tempC: 60,
  memoryUsedMb: 100_000,
  memoryTotalMb: 143_771,
  utilizationPct: 97,
}));
await measure("ingest", () => store.gpu.add({ keyId: 1, recordedAt: (recordedAt += 1000), readings }));
await measure("latest", () => store.gpu.latest());
const since = (windowDays: number) => recordedAt - windowDays * 86_400_000;
await measure("power, 7 days by 5 minutes", () =>
  readReport(store.gpu.powerHistory({ since: since(7), bucketMinutes: 5 })),
);
await measure("power, 30 days by 60 minutes", () =>
  readReport(store.gpu.powerHistory({ since: since(30), bucketMinutes: 60 })),
);
for (const [windowDays, bucketMinutes] of [
  [1, 2],
  [7, 15],
  [30, 60],
  [30, 45],
] as const) {
  const range = { since: since(windowDays), bucketMinutes };
  const name = `${windowDays} days by ${bucketMinutes} minutes`;
  await measure(`history of all, ${name}`, () => readReport(store.gpu.history(range)));
  await measure(`history of one, ${name}`, () => readReport(store.gpu.history(range, 7)));
}

async function measure(name: string, work: () => Promise<unknown>): Promise<void> {
  const tookMs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const begun = performance.now();
    await work();
    tookMs.push(performance.now() - begun);
  }
  tookMs.sort((a, b) => a - b);
  const at = (share: number) => (tookMs[Math.floor(rounds * share)] ?? Number.NaN).toFixed(2);
  console.log(`${name}: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`);
}
