/** `probe.ts URL KEY`: small completions in a steady rhythm, in a process of its own, until standard input closes. */
import type { Latency } from "./phases.ts";

const [url = "", key = ""] = process.argv.slice(2);
const clients = 4;
/** Between two completions of a client. */
const restMs = 20;

export const probeName = "probe";
export const probeUsage = { input: 5, output: 7 };

const body = JSON.stringify({ model: "m", user: probeName, messages: [{ role: "user", content: "Probe" }] });
const headers = {
  "x-api-key": key,
  "content-type": "application/json",
  "x-simulate": `usage=${probeUsage.input},${probeUsage.output}`,
};

async function measure(latencies: Latency[], stopped: () => boolean): Promise<void> {
  while (!stopped()) {
    const [startedAt, started] = [Date.now(), performance.now()];
    const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
    await response.text();
    if (response.status !== 200) throw new Error(`The probe got ${response.status}`);
    latencies.push({ startedAt, tookMs: performance.now() - started });
    await Bun.sleep(restMs);
  }
}

if (import.meta.main) {
  const latencies: Latency[] = [];
  let isStopped = false;
  const ended = Promise.all(Array.from({ length: clients }, () => measure(latencies, () => isStopped)));
  await Bun.stdin.text();
  isStopped = true;
  await ended;
  process.stdout.write(JSON.stringify(latencies));
}
