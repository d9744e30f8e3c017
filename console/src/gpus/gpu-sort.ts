import type { Sort } from "../lib/sort.ts";
import { attentionOf, memoryShare } from "./gpu-state.ts";
import type { Gpu } from "./queries.ts";

export const gpuColumns = {
  gpu: "ascending",
  power: "descending",
  utilisation: "descending",
  memory: "descending",
  temperature: "descending",
} as const;

type Column = keyof typeof gpuColumns;
export type GpuSort = Sort<Column>;

/** A value that is not reported sorts before all others. */
const valueOf: Record<Column, (gpu: Gpu) => number> = {
  gpu: (gpu) => gpu.gpu_id,
  power: (gpu) => gpu.power_draw_w ?? -1,
  utilisation: (gpu) => gpu.utilization_pct ?? -1,
  memory: (gpu) => memoryShare(gpu) ?? -1,
  temperature: (gpu) => gpu.temp_c ?? -1,
};

/** @param sort undefined: what needs attention first */
export function sortGpus(gpus: readonly Gpu[], sort: GpuSort | undefined, now: number): Gpu[] {
  const value = sort === undefined ? (gpu: Gpu) => -attentionOf(gpu, now) : valueOf[sort.column];
  const sign = sort?.direction === "descending" ? -1 : 1;
  const compare = (a: number, b: number): number => (a === b ? 0 : a < b ? -sign : sign);
  return gpus.toSorted((a, b) => compare(value(a), value(b)) || a.gpu_id - b.gpu_id);
}
