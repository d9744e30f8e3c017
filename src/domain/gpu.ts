/** One GPU at one moment. Null: the tool did not report the value. */
export interface GpuReading {
  /** 0 to 255, unique over all hosts. */
  gpuId: number;
  name: string;
  /** Watts. */
  powerDrawW: number | null;
  /** Degrees Celsius. */
  tempC: number | null;
  memoryUsedMb: number | null;
  memoryTotalMb: number | null;
  utilizationPct: number | null;
}
