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

/** Above what GPUs reach under a steady load; most throttle between 85 and 95 °C. */
export const hotCelsius = 85;
