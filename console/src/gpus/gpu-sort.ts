import { attentionOf, memoryShare } from "./gpu-state.ts";
import type { Gpu } from "./queries.ts";

/** The sortable columns of the GPU table, and the direction of the first click. */
const firstDirections = {
  gpu: "ascending",
  power: "descending",
  utilisation: "descending",
  memory: "descending",
  temperature: "descending",
} as const;

export type GpuSortColumn = keyof typeof firstDirections;

export interface GpuSort {
  column: GpuSortColumn;
  direction: "ascending" | "descending";
}

/** A value that is not reported sorts before all others. */
const valueOf: Record<GpuSortColumn, (gpu: Gpu) => number> = {
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

/** @param text `power` for ascending, `-power` for descending; undefined for anything unknown */
export function parseGpuSort(text: string | undefined): GpuSort | undefined {
  const column = text?.replace(/^-/, "") ?? "";
  if (text === undefined || !Object.hasOwn(firstDirections, column)) return undefined;
  return { column: column as GpuSortColumn, direction: text.startsWith("-") ? "descending" : "ascending" };
}

export const formatGpuSort = ({ column, direction }: GpuSort): string =>
  direction === "descending" ? `-${column}` : column;

/** The sort after a click on a column header. */
export function nextGpuSort(current: GpuSort | undefined, column: GpuSortColumn): GpuSort {
  if (current?.column !== column) return { column, direction: firstDirections[column] };
  return { column, direction: current.direction === "ascending" ? "descending" : "ascending" };
}
