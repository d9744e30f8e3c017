import type { Gpu } from "./resources.ts";

/** A host pushes about once a second: after this long without a word nobody should trust its last one. */
const staleAfterMs = 120_000;

export const isStale = (gpu: Pick<Gpu, "recorded_at">, now: number): boolean =>
  now - Date.parse(gpu.recorded_at) >= staleAfterMs;

export interface GpuSums {
  reporting: number;
  powerW: number;
  /** Mean over those that tell; undefined where none does. */
  utilizationPct: number | undefined;
  memoryUsedMb: number;
  memoryTotalMb: number;
  hottestC: number | undefined;
}

/** Sums over the GPUs that report now; stale ones are left out. */
export function sumGpus(gpus: readonly Gpu[], now: number): GpuSums {
  const live = gpus.filter((gpu) => !isStale(gpu, now));
  const utilizations = live.flatMap((gpu) => gpu.utilization_pct ?? []);
  const temperatures = live.flatMap((gpu) => gpu.temp_c ?? []);
  return {
    reporting: live.length,
    powerW: sum(live.map((gpu) => gpu.power_draw_w ?? 0)),
    utilizationPct: utilizations.length === 0 ? undefined : sum(utilizations) / utilizations.length,
    memoryUsedMb: sum(live.map((gpu) => gpu.memory_used_mb ?? 0)),
    memoryTotalMb: sum(live.map((gpu) => gpu.memory_total_mb ?? 0)),
    hottestC: temperatures.length === 0 ? undefined : Math.max(...temperatures),
  };
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
