import { hotCelsius } from "../../../src/domain/gpu.ts";
import type { Gpu } from "./queries.ts";

/** A host pushes about once a second. After this long without a sample, the last one is too old to trust. */
const staleAfterMs = 120_000;

export const isStale = (gpu: Pick<Gpu, "recorded_at">, now: number): boolean =>
  now - Date.parse(gpu.recorded_at) >= staleAfterMs;

/** An inference server reserves about nine tenths from its start. */
const fullShare = 0.95;

export const isHot = (gpu: Pick<Gpu, "temp_c">): boolean => (gpu.temp_c ?? 0) >= hotCelsius;

/** The used share of the memory; undefined if the GPU does not report it. */
export function memoryShare({
  memory_used_mb: used,
  memory_total_mb: total,
}: Pick<Gpu, "memory_used_mb" | "memory_total_mb">): number | undefined {
  return used === null || total === null || total === 0 ? undefined : used / total;
}

export const isFull = (gpu: Pick<Gpu, "memory_used_mb" | "memory_total_mb">): boolean =>
  (memoryShare(gpu) ?? 0) >= fullShare;

/** What an operator looks at first: silent GPUs, then hot ones, the hottest first; the others are in order. */
export const attentionOf = (gpu: Gpu, now: number): number =>
  isStale(gpu, now) ? Infinity : isHot(gpu) ? (gpu.temp_c ?? 0) : 0;

export type GpuSums = ReturnType<typeof sumGpus>;

/** Sums over all GPUs but the stale ones: each over those that report the value; undefined if none does. */
export function sumGpus(gpus: readonly Gpu[], now: number) {
  const live = gpus.filter((gpu) => !isStale(gpu, now));
  const utilizations = live.flatMap((gpu) => gpu.utilization_pct ?? []);
  const utilization = sumOf(utilizations);
  const temperatures = live.flatMap((gpu) => gpu.temp_c ?? []);
  return {
    reporting: live.length,
    powerW: sumOf(live.flatMap((gpu) => gpu.power_draw_w ?? [])),
    /** The mean. */
    utilizationPct: utilization === undefined ? undefined : utilization / utilizations.length,
    memoryUsedMb: sumOf(live.flatMap((gpu) => gpu.memory_used_mb ?? [])),
    memoryTotalMb: sumOf(live.flatMap((gpu) => gpu.memory_total_mb ?? [])),
    hottestC: temperatures.length === 0 ? undefined : Math.max(...temperatures),
  };
}

const sumOf = (values: readonly number[]): number | undefined =>
  values.length === 0 ? undefined : values.reduce((total, value) => total + value, 0);
