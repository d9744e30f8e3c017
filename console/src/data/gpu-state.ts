import type { Gpu } from "./queries.ts";

/** A host pushes about once a second. After this long without a sample, the last one is too old to trust. */
const staleAfterMs = 120_000;

export const isStale = (gpu: Pick<Gpu, "recorded_at">, now: number): boolean =>
  now - Date.parse(gpu.recorded_at) >= staleAfterMs;

/** Each over the GPUs that report the value; undefined if none does. */
export interface GpuSums {
  reporting: number;
  powerW: number | undefined;
  /** The mean. */
  utilizationPct: number | undefined;
  memoryUsedMb: number | undefined;
  memoryTotalMb: number | undefined;
  hottestC: number | undefined;
}

/** Sums over all GPUs but the stale ones. */
export function sumGpus(gpus: readonly Gpu[], now: number): GpuSums {
  const live = gpus.filter((gpu) => !isStale(gpu, now));
  const utilizations = live.flatMap((gpu) => gpu.utilization_pct ?? []);
  const utilization = sumOf(utilizations);
  const temperatures = live.flatMap((gpu) => gpu.temp_c ?? []);
  return {
    reporting: live.length,
    powerW: sumOf(live.flatMap((gpu) => gpu.power_draw_w ?? [])),
    utilizationPct: utilization === undefined ? undefined : utilization / utilizations.length,
    memoryUsedMb: sumOf(live.flatMap((gpu) => gpu.memory_used_mb ?? [])),
    memoryTotalMb: sumOf(live.flatMap((gpu) => gpu.memory_total_mb ?? [])),
    hottestC: temperatures.length === 0 ? undefined : Math.max(...temperatures),
  };
}

const sumOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((total, value) => total + value, 0);
