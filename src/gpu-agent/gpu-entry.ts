/** One GPU in the body of POST /api/gpu-stats. A field that the host cannot measure is left out. */
export interface GpuEntry {
  gpu_id: number;
  name: string;
  /** Watts. */
  power_draw_w?: number;
  /** Degrees Celsius. */
  temp_c?: number;
  /** MiB, the unit that the vendors' tools print. */
  memory_used_mb?: number;
  memory_total_mb?: number;
  utilization_pct?: number;
}

/** All GPUs of a host at one moment. */
export type SampleSet = readonly GpuEntry[];

export type Measure = Exclude<keyof GpuEntry, "gpu_id" | "name">;

/** What a vendor's tool says about one GPU; `index` is the host's own number for it. */
export interface ToolReading extends Partial<Record<Measure, number | undefined>> {
  index: number;
  name: string;
}

const largestGpuId = 255;
const longestName = 64;

/** The bounds of POST /api/gpu-stats: the server drops a whole entry for one field outside them. */
const bounds: Record<Measure, { maximum: number; whole: boolean }> = {
  power_draw_w: { maximum: 10_000, whole: false },
  temp_c: { maximum: 150, whole: true },
  memory_used_mb: { maximum: Number.MAX_SAFE_INTEGER, whole: true },
  memory_total_mb: { maximum: Number.MAX_SAFE_INTEGER, whole: true },
  utilization_pct: { maximum: 100, whole: true },
};

/** @returns undefined where the id, offset included, is beyond what the server takes */
export function findGpuEntry(reading: ToolReading, gpuIdOffset: number): GpuEntry | undefined {
  const id = reading.index + gpuIdOffset;
  if (id > largestGpuId) return undefined;
  const entry: GpuEntry = { gpu_id: id, name: shownName(reading.name) };
  for (const [measure, { maximum, whole }] of Object.entries(bounds) as [Measure, (typeof bounds)[Measure]][]) {
    const value = whole ? Math.round(reading[measure] ?? NaN) : (reading[measure] ?? NaN);
    if (value >= 0 && value <= maximum) entry[measure] = value;
  }
  return entry;
}

function shownName(name: string): string {
  // Half a surrogate pair is not text any more, so one that the cut leaves goes too.
  const cut = name
    .trim()
    .slice(0, longestName)
    .replace(/[\uD800-\uDBFF]$/, "");
  return cut === "" ? "GPU" : cut;
}
