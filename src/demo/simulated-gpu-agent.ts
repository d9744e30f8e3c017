import { advanceGpuHost, idleGpuHost, readGpus } from "./gpu-host.ts";
import { wait } from "../time/wait.ts";
import { gpuCount } from "./past-gpus.ts";
import type { GpuReading } from "../domain/gpu.ts";

const gpuHostName = "gpu-01";
const intervalMs = 1000;
/** After this time, a constant load no longer changes the temperature. */
const settlesMs = 10 * 60_000;

/** Pushes the readings of a simulated GPU host once a second until the signal aborts. */
export async function runSimulatedGpuAgent({
  url,
  key,
  load,
  signal,
}: {
  /** Origin of `/api`. */
  url: string;
  key: string;
  /** How busy the GPUs are now, 0 to 1. */
  load: () => number;
  signal: AbortSignal;
}): Promise<void> {
  let host = advanceGpuHost(idleGpuHost(gpuCount), load(), Date.now(), settlesMs);
  for (let now = Date.now(), last = now - intervalMs; !signal.aborted; last = now, now = Date.now()) {
    host = advanceGpuHost(host, load(), now, now - last);
    await post(`${url}/api/gpu-stats`, key, readGpus(host, now).map(entryOf), signal);
    await wait(intervalMs, signal);
  }
}

async function post(url: string, key: string, gpus: unknown[], signal: AbortSignal): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const body = JSON.stringify({ host: gpuHostName, gpus });
  // A lost sample is not repeated; the next one follows in a second.
  await fetch(url, { method: "POST", headers, body, signal, proxy: false }).catch(() => undefined);
}

const entryOf = (reading: GpuReading): unknown => ({
  gpu_id: reading.gpuId,
  name: reading.name,
  power_draw_w: reading.powerDrawW,
  temp_c: reading.tempC,
  memory_used_mb: reading.memoryUsedMb,
  memory_total_mb: reading.memoryTotalMb,
  utilization_pct: reading.utilizationPct,
});
