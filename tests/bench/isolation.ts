/**
 * How long completions take beside a flood on 2,000 connections, of one kind and of another in turn, so that a busy machine
 * slows all of them alike. Usage: `bun tests/bench/isolation.ts [seconds] [rounds] [connections]`
 */
import { type ProgramWithKey, startProgramWithKey } from "../support/program-with-key.ts";
import { chat, completionsOf, floodOf, startBackend, startLoad } from "./load/start.ts";
import type { LoadResult } from "./load/spec.ts";
import { markdownTable } from "./table.ts";

const [seconds = "5", rounds = "3", connections = "2000"] = process.argv.slice(2);

const gpus = { gpus: [{ gpu_id: 0, name: "GPU", power_draw_w: 300 }] };
/** The first one is what the others are compared with. */
const floods: readonly [name: string, path: string, key: (gate: ProgramWithKey) => string, body: object][] = [
  ["wrong keys", "/v1/chat/completions", () => "wrong", chat],
  ["refused logins", "/api/login", () => "", { username: "admin", password: "wrong" }],
  ["GPU posts", "/api/gpu-stats", ({ key }) => key, gpus],
];

async function measure(gate: ProgramWithKey, [, path, key, body]: (typeof floods)[number]) {
  const flood = startLoad(
    completionsOf(gate, Number(seconds), {
      path,
      keys: [key(gate)],
      body: JSON.stringify(body),
      connections: Number(connections),
      ...floodOf(Number(seconds)),
    }),
  );
  // The flood opens its connections.
  await Bun.sleep(2000);
  return { completions: await startLoad(completionsOf(gate, Number(seconds))), flood: await flood };
}

const backend = await startBackend("simulator.ts");
const gate = await startProgramWithKey(backend.url, { LOG_LEVEL: "warn" });
await startLoad(completionsOf(gate, Number(seconds)));

const results = floods.map(() => [] as Awaited<ReturnType<typeof measure>>[]);
for (let round = 0; round < Number(rounds); round++) {
  for (const [index, flood] of floods.entries()) results[index]?.push(await measure(gate, flood));
}

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[values.length >> 1] ?? Number.NaN;
const p99Of = (index: number): number =>
  median((results[index] ?? []).map((one) => one.completions.latency.p99 / 1000));
const ms = (value: number): string => value.toFixed(0);
const degraded = gate
  .stdout()
  .split("\n")
  .filter((line) => line.includes("buffering usage in memory")).length;
console.log(
  markdownTable([
    ["beside", ...floods.map(([name]) => name)],
    [
      "completions, p50 (ms)",
      ...results.map((all) => ms(median(all.map((one) => one.completions.latency.p50 / 1000)))),
    ],
    ["completions, p99 (ms)", ...results.map((_, index) => ms(p99Of(index)))],
    [
      "p99 in each round (ms)",
      ...results.map((all) => all.map((one) => ms(one.completions.latency.p99 / 1000)).join(", ")),
    ],
    ["p99 by that of wrong keys", ...results.map((_, index) => (p99Of(index) / p99Of(0)).toFixed(2))],
    [
      "flood's requests a second",
      ...results.map((all) => ms(median(all.map(({ flood }) => sumOf(flood) / flood.seconds)))),
    ],
    ["its statuses", ...results.map((all) => JSON.stringify(all[0]?.flood.statuses).replaceAll('"', ""))],
  ]),
);
console.log(`entered degraded mode ${degraded} times`);
await gate.stop();
backend.stop();

function sumOf({ statuses }: LoadResult): number {
  return Object.values(statuses).reduce((sum, count) => sum + count, 0);
}
