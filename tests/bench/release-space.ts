// How long SQLite's file takes to shrink, and what requests wait meanwhile: `bun tests/bench/release-space.ts [days]`.
// The default is 0.7 days of samples of 64 GPUs; the full size is 7 days, which are 38.7 million rows.
import { statSync } from "node:fs";
import { sql } from "drizzle-orm";
import { startSimulator } from "../support/simulator/simulator.ts";
import { openWriter } from "../../src/store/sqlite/engine.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { createTempFolder } from "../support/temp-folder.ts";

const days = Number(process.argv[2] ?? "0.7");
const gpuCount = 64;
const seconds = Math.round(days * 86_400);
const first = Date.now() - seconds * 1000;
const password = "correct horse battery staple";
/** The file stays the same for so long: nothing is left to release. */
const quietMs = 30_000;

using folder = createTempFolder();
using backend = startSimulator();
const file = databaseFile(folder.path);
const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
const secondsSince = (start: number): string => `${((performance.now() - start) / 1000).toFixed(1)} s`;

await fillAndDelete();
const program = await startProgram({
  DATA_DIR: folder.path,
  ADMIN_PASSWORD: password,
  PROXY_UPSTREAM_URL: backend.url,
  LOG_LEVEL: "warn",
});
const { key } = await (await logIn(program.adminUrl, "admin", password)).createKey("bench");
await measure();
await program.stop();

/** An hour of samples at a time, and deleted in the same way. */
async function fillAndDelete(): Promise<void> {
  const engine = openWriter(file);
  const hours = Array.from({ length: Math.ceil(seconds / 3600) }, (_, hour) => [hour * 3600, (hour + 1) * 3600]);
  const checkpoint = (): Promise<void> => engine.checkpoint(() => undefined);
  let startedAt = performance.now();
  for (const [from = 0, to = 0] of hours) {
    await engine.rows(sql`insert into gpu_samples
      with recursive second(s) as (select ${from} union all select s + 1 from second where s + 1 < ${Math.min(to, seconds)}),
        gpu(g) as (select 0 union all select g + 1 from gpu where g + 1 < ${gpuCount})
      select ${first} * 256 + s * 256000 + g, 'NVIDIA H200', 300 + (s + g) % 400, 60, 100000, 143771, 97 from second, gpu`);
    await checkpoint();
  }
  const filled = `${(seconds * gpuCount) / 1e6} million samples, ${megabytes(sizeOf(file))}`;
  console.log(`${filled}, written in ${secondsSince(startedAt)}`);
  startedAt = performance.now();
  for (const [, to = 0] of hours) {
    await engine.rows(sql`delete from gpu_samples where id < ${first * 256 + to * 256_000}`);
    await checkpoint();
  }
  engine.close();
  console.log(`deleted in ${secondsSince(startedAt)}, ${megabytes(sizeOf(file))} are left`);
}

async function measure(): Promise<void> {
  const startedAt = performance.now();
  const before = sizeOf(file);
  let [size, largestLog, shrankAt, firstShrankAt] = [before, 0, startedAt, 0];
  const [earlier, during, after]: [number[], number[], number[]] = [[], [], []];
  while (performance.now() - shrankAt < quietMs) {
    const tookMs = await complete();
    const now = performance.now();
    const found = sizeOf(file);
    largestLog = Math.max(largestLog, sizeOf(`${file}-wal`));
    if (found < size) {
      firstShrankAt ||= now;
      shrankAt = now;
    }
    size = found;
    (firstShrankAt === 0 ? earlier : now - shrankAt < 5000 ? during : after).push(tookMs);
    await Bun.sleep(20);
  }
  const tookSeconds = (shrankAt - firstShrankAt) / 1000;
  const rate = (before - size) / tookSeconds;
  console.log(`${megabytes(before)} to ${megabytes(size)} in ${tookSeconds.toFixed(0)} s, ${megabytes(rate)} a second`);
  console.log(`largest write-ahead log: ${megabytes(largestLog)}`);
  console.log(`completions before it:        ${quantiles(earlier)}`);
  console.log(`completions while it shrinks: ${quantiles(during)}`);
  console.log(`completions after it:         ${quantiles(after)}`);
}

/** @returns how long a completion takes with its count committed, in milliseconds */
async function complete(): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(`${program.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] }),
  });
  await response.text();
  return performance.now() - startedAt;
}

function quantiles(times: number[]): string {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.floor(sorted.length * share)] ?? 0).toFixed(1);
  const longest = (sorted.at(-1) ?? 0).toFixed(1);
  return `${sorted.length}, median ${at(0.5)}, 99 % ${at(0.99)}, 99.9 % ${at(0.999)}, longest ${longest} ms`;
}
