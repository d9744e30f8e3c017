/**
 * How long completions take beside one connection that sends hostile bodies of 60 MiB without a pause, and how long the
 * event loop was kept at most, as the server itself says. The load, the backend and the server share the machine's cores.
 * Usage: `bun tests/bench/long-bodies.ts [seconds] [MiB] [part of a body's name]`
 */
import { hostileBodies } from "../fixtures/hostile-bodies.ts";
import { startProgramWithKey } from "../support/program-with-key.ts";
import { completionsOf, floodOf, startBackend, startLoad } from "./load/start.ts";
import { markdownTable } from "./table.ts";

const [seconds = "4", mebibytes = "60", part = ""] = process.argv.slice(2);
const length = Number(mebibytes) * 1024 * 1024;

const backend = await startBackend("sink.ts");
const metricsToken = "metrics";
const gate = await startProgramWithKey(backend.url, { LOG_LEVEL: "warn", METRICS_TOKEN: metricsToken });

/** In milliseconds, since the last call. */
async function longestDelay(): Promise<number> {
  const headers = { Authorization: `Bearer ${metricsToken}` };
  const text = await (await fetch(`${gate.adminUrl}/metrics`, { headers })).text();
  return Number(/^tollgate_event_loop_delay_max_seconds(?:\{.*\})? (.+)$/m.exec(text)?.[1]) * 1000;
}

const ms = (value: number): string => value.toFixed(1);

async function measureBeside(name: string, create: ((length: number) => Buffer) | undefined): Promise<string[]> {
  const bodies =
    create &&
    startLoad(
      completionsOf(gate, Number(seconds), {
        body: create(length).toString(),
        connections: 1,
        ...floodOf(Number(seconds)),
      }),
    );
  // Time for the first body to be made and sent.
  await Bun.sleep(2000);
  await longestDelay();
  const { latency } = await startLoad(
    completionsOf(gate, Number(seconds), { connections: 20, requests: Number(seconds) * 200, perSecond: 200 }),
  );
  const delay = await longestDelay();
  const statuses = JSON.stringify((await bodies)?.statuses ?? {}).replaceAll('"', "");
  return [name, ms(latency.p50 / 1000), ms(latency.p99 / 1000), ms(latency.max / 1000), ms(delay), statuses];
}

await startLoad(completionsOf(gate, 1));
const rows = [["beside", "p50 (ms)", "p99 (ms)", "slowest (ms)", "event loop kept for (ms)", "statuses of the bodies"]];
rows.push(await measureBeside("nothing", undefined));
for (const { name, create } of hostileBodies) {
  if (name.includes(part)) rows.push(await measureBeside(name, create));
}
console.log(markdownTable(rows));
await gate.stop();
backend.stop();
