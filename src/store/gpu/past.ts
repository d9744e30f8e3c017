import type { GpuReading } from "../../domain/gpu.ts";

/** What a GPU measured in an hour that is over. */
export interface GpuHour extends Record<"power" | "temp" | "memory" | "utilization", GpuHourMeasure> {
  /** Since the epoch. */
  hour: number;
  gpuId: number;
  /** How many minutes of the hour have readings. */
  minutes: number;
}

interface GpuHourMeasure {
  mean: number;
  max: number;
  last: number;
}

/** Measurements of the past that did not come as pushes. */
export interface GpuPast {
  hours: readonly GpuHour[];
  /** With the power of all GPUs together; without readings, single GPUs have only the hour. */
  minutes: readonly { minute: number; powerW: number; readings: readonly GpuReading[] }[];
}
