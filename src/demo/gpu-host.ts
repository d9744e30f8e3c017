import type { GpuReading } from "../domain/gpu.ts";
import { wait } from "../time/wait.ts";

const gpuCount = 4;
/** The model's weights and the reserved cache, also while idle. */
const memoryReservedMb = 126_400;
const [idlePowerW, maxPowerW] = [76, 700];
/** How far a GPU at full power settles above the inlet temperature. */
const [inletCelsius, riseCelsius] = [27, 43];

/**
 * What the host's own tool would report.
 * @param load 0 (idle) to 1 (fully busy)
 * @param nowMs seeds the small variations; the same arguments always give the same
 */
export const readGpus = (load: number, nowMs: number): GpuReading[] =>
  Array.from({ length: gpuCount }, (_, gpuId) => {
    const utilization = load === 0 ? 0 : Math.min(1, Math.max(0.02, load + 0.06 * flutter(gpuId, nowMs)));
    // Decoding is memory-bound: the first half of the load draws more than half of the power.
    const powerW = idlePowerW + (maxPowerW - idlePowerW) * utilization ** 0.7;
    return {
      gpuId,
      name: "NVIDIA H200",
      powerDrawW: Math.round(10 * (powerW + 3 * flutter(gpuId + 17, nowMs))) / 10,
      tempC: Math.round(inletCelsius + riseCelsius * (powerW / maxPowerW) + gpuId * 0.4),
      memoryUsedMb: Math.round(memoryReservedMb + load * 9000),
      memoryTotalMb: 143_771,
      utilizationPct: Math.round(100 * utilization),
    };
  });

/** -1 to 1, smooth over time and different for each GPU. */
function flutter(gpuId: number, nowMs: number): number {
  const seconds = nowMs / 1000;
  return (Math.sin(seconds / 3.1 + gpuId * 1.7) + Math.sin(seconds / 1.3 + gpuId * 2.9)) / 2;
}

/**
 * Pushes the readings once a second until the signal aborts.
 * @param url the origin of `/api`. @param load how busy the GPUs are now, 0 to 1
 */
export async function runSimulatedGpuAgent(
  url: string,
  key: string,
  load: () => number,
  signal: AbortSignal,
): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  while (!signal.aborted) {
    const body = JSON.stringify({ host: "gpu-01", gpus: readGpus(load(), Date.now()).map(entryOf) });
    // A lost sample is not repeated; the next one follows in a second.
    await fetch(`${url}/api/gpu-stats`, { method: "POST", headers, body, signal, proxy: false }).catch(() => undefined);
    await wait(1000, signal);
  }
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
