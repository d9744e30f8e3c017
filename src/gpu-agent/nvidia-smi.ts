import type { ToolReading } from "./gpu-entry.ts";

/** Names as `nvidia-smi --help-query-gpu` lists them, in the order that `findNvidiaReading` reads. */
const fields = "index,name,power.draw,temperature.gpu,memory.used,memory.total,utilization.gpu";

/** @param intervalMs how often to print every GPU; undefined for once */
export function nvidiaSmiArguments(intervalMs: number | undefined): string[] {
  const loop = intervalMs === undefined ? [] : ["-lms", String(intervalMs)];
  return [`--query-gpu=${fields}`, "--format=csv,noheader,nounits", ...loop];
}

/**
 * Reads one line of the tool's CSV, which is not quoted: a comma in a name is told apart by counting from both ends.
 * What is no number counts as missing: `[N/A]`, `[Not Supported]`, `[Unknown Error]`, `[Insufficient Permissions]`, `ERR!`.
 * @returns undefined where the line is no GPU's, so the tool says something to people
 */
export function findNvidiaReading(line: string): ToolReading | undefined {
  const cells = line.split(",").map((cell) => cell.trim());
  const [index = ""] = cells;
  if (cells.length < 7 || !/^\d{1,3}$/.test(index)) return undefined;
  const [power, temperature, used, total, utilization] = cells.slice(-5).map(findNumber);
  return {
    index: Number(index),
    name: cells.slice(1, -5).join(", "),
    power_draw_w: power,
    temp_c: temperature,
    memory_used_mb: used,
    memory_total_mb: total,
    utilization_pct: utilization,
  };
}

function findNumber(cell: string): number | undefined {
  return /^\d+(\.\d+)?$/.test(cell) ? Number(cell) : undefined;
}

/** The tool's own sentences, and what an operator can make of them. */
const meanings: readonly [RegExp, string][] = [
  [/couldn't communicate with the NVIDIA driver/i, "the NVIDIA driver is not running"],
  [/no devices were found/i, "the NVIDIA driver sees no GPU"],
  [/unable to determine the device handle|gpu is lost/i, "a GPU no longer answers; the host may need a reboot"],
  [/version mismatch/i, "the NVIDIA driver was updated and not loaded again; the host may need a reboot"],
  [/not a valid field/i, "this nvidia-smi is too old for the query"],
];

/** Words for a run that ended without being asked to. `said` is the tool's own line, or empty. */
export function nvidiaSmiEnding(status: number, said: string): string {
  const meaning = meanings.find(([pattern]) => pattern.test(said))?.[1] ?? `it ended with status ${status}`;
  return `nvidia-smi gives no readings: ${meaning}${said === "" ? "" : ` ("${said.slice(0, 200)}")`}`;
}
