/** One GPU in the body of POST /api/gpu-stats. Fields that the host cannot measure are left out. */
interface GpuEntry {
  gpu_id: number;
  name: string;
  /** Watts. */
  power_draw_w?: number;
  /** Degrees Celsius. */
  temp_c?: number;
  /** MiB, as printed by the vendors' tools. */
  memory_used_mb?: number;
  memory_total_mb?: number;
  utilization_pct?: number;
}

/** All GPUs of a host at one time. */
export type SampleSet = readonly GpuEntry[];

/** The body of POST /api/gpu-stats. */
export interface SampleBody {
  /** Names this host. */
  host?: string;
  gpus: SampleSet;
}

export type Measure = Exclude<keyof GpuEntry, "gpu_id" | "name">;

/** What a vendor's tool reports for one GPU; `index` is its number on this host. */
export interface ToolReading extends Partial<Record<Measure, number | undefined>> {
  index: number;
  name: string;
}

/** A number, or one with a unit such as `45 W`. Anything else (`N/A`, `[GPU is lost]`) is a field that cannot be read. */
export function findMeasured(printed: unknown): number | undefined {
  if (typeof printed === "number") return printed;
  const digits = typeof printed === "string" ? /^(\d+(?:\.\d+)?)(?: *[A-Za-z%]+)?$/.exec(printed)?.[1] : undefined;
  return digits === undefined ? undefined : Number(digits);
}

const maxGpuId = 255;
const maxNameLength = 64;

/** The bounds of POST /api/gpu-stats: for one field out of bounds the server skips the whole entry. */
const bounds: Record<Measure, { maximum: number; whole: boolean }> = {
  power_draw_w: { maximum: 10_000, whole: false },
  temp_c: { maximum: 150, whole: true },
  memory_used_mb: { maximum: Number.MAX_SAFE_INTEGER, whole: true },
  memory_total_mb: { maximum: Number.MAX_SAFE_INTEGER, whole: true },
  utilization_pct: { maximum: 100, whole: true },
};

/** @returns undefined if the id, including the offset, is above the maximum */
export function findGpuEntry(reading: ToolReading, gpuIdOffset: number): GpuEntry | undefined {
  const id = reading.index + gpuIdOffset;
  if (id > maxGpuId) return undefined;
  const entry: GpuEntry = { gpu_id: id, name: truncateName(reading.name) };
  for (const [measure, { maximum, whole }] of Object.entries(bounds) as [Measure, (typeof bounds)[Measure]][]) {
    const value = whole ? Math.round(reading[measure] ?? NaN) : (reading[measure] ?? NaN);
    if (value >= 0 && value <= maximum) entry[measure] = value;
  }
  return entry;
}

function truncateName(name: string): string {
  // The cut may split a surrogate pair: half of one is not valid text.
  const cut = name
    .trim()
    .slice(0, maxNameLength)
    .replace(/[\uD800-\uDBFF]$/, "");
  return cut === "" ? "GPU" : cut;
}
