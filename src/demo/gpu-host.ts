import type { GpuReading } from "../domain/gpu.ts";

/** The state of a host's GPUs. */
export interface GpuHost {
  gpus: readonly GpuState[];
}

interface GpuState {
  /** 0 to 1. Follows the load within a second or two. */
  utilization: number;
  /** Celsius. Follows the power within half a minute. */
  temperature: number;
  memoryUsedMb: number;
}

const name = "NVIDIA H200";
const memoryTotalMb = 143_771;
/** The model's weights and the reserved cache, also while idle. */
const memoryReservedMb = 126_400;
const idlePowerW = 76;
const maxPowerW = 700;
const inletCelsius = 27;
/** How far a GPU at full power settles above the inlet temperature. */
const riseCelsius = 43;
const utilizationSettlesMs = 1500;
const temperatureSettlesMs = 25_000;

export function idleGpuHost(count: number): GpuHost {
  const temperature = settledTemperature(idlePowerW);
  return {
    gpus: Array.from({ length: count }, () => ({ utilization: 0, temperature, memoryUsedMb: memoryReservedMb })),
  };
}

/**
 * The host after `elapsedMs`.
 * @param load 0 (idle) to 1 (fully busy) during that time
 * @param nowMs seeds the small variations only; the same arguments always give the same host
 */
export function advanceGpuHost(host: GpuHost, load: number, nowMs: number, elapsedMs: number): GpuHost {
  const gpus = host.gpus.map((gpu, gpuId): GpuState => {
    const target = load === 0 ? 0 : clamp(load + 0.06 * flutter(gpuId, nowMs), 0.02, 1);
    const utilization = approach(gpu.utilization, target, elapsedMs / utilizationSettlesMs);
    const temperature = approach(
      gpu.temperature,
      settledTemperature(powerW(utilization)) + gpuId * 0.4,
      elapsedMs / temperatureSettlesMs,
    );
    const memoryUsedMb = approach(gpu.memoryUsedMb, memoryReservedMb + load * 9000, elapsedMs / temperatureSettlesMs);
    return { utilization, temperature, memoryUsedMb };
  });
  return { gpus };
}

/** The readings that the host's own tool would report. */
export function readGpus(host: GpuHost, nowMs: number): GpuReading[] {
  return host.gpus.map((gpu, gpuId) => ({
    gpuId,
    name,
    powerDrawW: Math.round(10 * (powerW(gpu.utilization) + 3 * flutter(gpuId + 17, nowMs))) / 10,
    tempC: Math.round(gpu.temperature),
    memoryUsedMb: Math.round(gpu.memoryUsedMb),
    memoryTotalMb,
    utilizationPct: Math.round(100 * gpu.utilization),
  }));
}

/** Decoding is memory-bound: the first half of the load draws more than half of the power. */
function powerW(utilization: number): number {
  return idlePowerW + (maxPowerW - idlePowerW) * utilization ** 0.7;
}

function settledTemperature(power: number): number {
  return inletCelsius + riseCelsius * (power / maxPowerW);
}

/** First-order lag. */
function approach(value: number, target: number, elapsed: number): number {
  return target + (value - target) * Math.exp(-elapsed);
}

/** -1 to 1, smooth over time and different for each GPU. */
function flutter(gpuId: number, nowMs: number): number {
  const seconds = nowMs / 1000;
  return (Math.sin(seconds / 3.1 + gpuId * 1.7) + Math.sin(seconds / 1.3 + gpuId * 2.9)) / 2;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
