import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { sql } from "drizzle-orm";
import { type Simulator, startSimulator } from "../support/simulator/simulator.ts";
import { openWriter } from "../../src/store/sqlite/engine.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { dayFromNumber, dayNumberOf, minuteOf, minutesPerDay, minutesPerHour } from "../../src/time/seoul.ts";
import { type AdminClient, logIn } from "../support/admin-client.ts";
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import { createTempFolder, type TempFolder } from "../support/temp-folder.ts";

let folder: TempFolder;
let backend: Simulator;
let program: ProgramWithKey;
let admin: AdminClient;
beforeAll(async () => {
  folder = createTempFolder();
  writeHistory();
  backend = startSimulator();
  program = await startProgramWithKey(backend.url, { DATA_DIR: folder.path });
  admin = await logIn(program.adminUrl, "admin", "password");
});
afterAll(async () => {
  await program.stop();
  backend.stop();
  folder.remove();
});

const keyCount = 10;
const modelCount = 15;
const chartHours = 100;

function writeHistory(): void {
  const engine = openWriter(databaseFile(folder.path));
  const last = minuteOf(Date.now());
  const lastHour = Math.floor(last / minutesPerHour);
  engine.db.run(sql`insert into usage_hour (hour, key_id, request_count, input_tokens, output_tokens)
    with recursive hour(h) as (select ${lastHour - chartHours} union all select h + 1 from hour where h < ${lastHour}),
      key(k) as (select 1 union all select k + 1 from key where k < 1000)
    select h, k, 1, h % 9000, 1000 + (h * k) % 9000 from hour, key`);
  const today = dayNumberOf(Date.now());
  engine.db.run(sql`insert into usage_model_day (day, key_id, model, request_count, input_tokens, output_tokens,
      cached_input_tokens, cached_beside_input_tokens, reasoning_tokens)
    with recursive day(d) as (select ${today - 364} union all select d + 1 from day where d < ${today}),
      key(k) as (select 1 union all select k + 1 from key where k < ${4 * keyCount}),
      model(m) as (select 1 union all select m + 1 from model where m < ${modelCount})
    select d, k, 'model-' || m, 1, d % 9000, m, 0, 0, 0 from day, key, model`);
  engine.db.run(sql`insert into gpu_power_minute (minute, power_draw_w)
    with recursive minute(m) as (select ${last - 30 * minutesPerDay} union all select m + 1 from minute where m < ${last})
    select m, 20000 + m % 9000 from minute`);
  engine.close();
}

const tickMs = 1;

const aYearAgo = dayFromNumber(dayNumberOf(Date.now()) - 364);

/** The CPU time that the program's main thread has used, in milliseconds: proc(5), schedstat. */
const mainThreadMs = (): number =>
  Number(readFileSync(`/proc/${program.pid}/task/${program.pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

/**
 * @returns the longest time between two events of a stream that has one every 5 milliseconds. A gap is no longer than what
 * the program computed in it, and without what this process, which sends and receives the events, came late by: the rest
 * is other programs'
 */
async function longestGapMs(): Promise<number> {
  const client = await program.postStream("rate=200; tokens=200");
  await client.nextEvent();
  let [longest, lateMs, ticked] = [0, 0, performance.now()];
  const tick = (): void => {
    const now = performance.now();
    lateMs += Math.max(0, now - ticked - tickMs);
    ticked = now;
  };
  using _ = setInterval(tick, tickMs);
  let [latest, used, late] = [performance.now(), mainThreadMs(), lateMs];
  while ((await client.nextEvent()) !== undefined) {
    tick();
    const [now, usedNow] = [performance.now(), mainThreadMs()];
    longest = Math.max(longest, Math.min(now - latest - (lateMs - late), usedNow - used));
    [latest, used, late] = [now, usedNow, lateMs];
  }
  client.close();
  return longest;
}

test.each([
  ["30 days of power minute by minute", "/api/gpu-stats/power-history?days=30&bucket_minutes=1", "points", 43_000],
  ["a year by key and model", `/api/usage/costs?by=key_model&limit=2000&from=${aYearAgo}`, "rows", 599],
  [
    "a thousand keys hour by hour",
    `/api/usage/chart?top=1000&list=1000&bucket_minutes=60&from=${new Date(Date.now() - chartHours * 3_600_000).toISOString()}`,
    "series",
    999,
  ],
])("%s delay the events of a stream by less than 20 ms", async (_, path, list, least) => {
  const body = await admin.expectOk<Record<string, unknown[]>>("GET", path);
  expect(body[list]?.length).toBeGreaterThan(least);

  let leastDelayMs = Infinity;
  // Load on the machine only adds to a delay, so the least of some rounds is what the report costs.
  for (let round = 0; round < 8 && leastDelayMs >= 20; round += 1) {
    const withoutMs = await longestGapMs();
    const over = new AbortController();
    const reports = (async () => {
      while (!over.signal.aborted) await (await admin.request("GET", path)).arrayBuffer();
    })();
    leastDelayMs = Math.min(leastDelayMs, (await longestGapMs()) - withoutMs);
    over.abort();
    await reports;
  }
  expect(leastDelayMs).toBeLessThan(20);
});
