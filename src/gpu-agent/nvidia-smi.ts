import { findMeasured, type ToolReading } from "./gpu-entry.ts";

/** Names from `nvidia-smi --help-query-gpu`, in the order that `findNvidiaReading` expects. */
const fields = "index,name,power.draw,temperature.gpu,memory.used,memory.total,utilization.gpu";

/** @param intervalMs how often the tool prints every GPU; undefined: once */
export function nvidiaSmiArguments(intervalMs: number | undefined): string[] {
  const loop = intervalMs === undefined ? [] : ["-lms", String(intervalMs)];
  return [`--query-gpu=${fields}`, "--format=csv,noheader,nounits", ...loop];
}

/**
 * Reads one line of the tool's CSV. It is not quoted: cells are counted from both ends, because a name may hold commas.
 * @returns undefined if the line is not about a GPU but a message for people
 */
export function findNvidiaReading(line: string): ToolReading | undefined {
  const cells = line.split(",").map((cell) => cell.trim());
  const [index = ""] = cells;
  if (cells.length < 7 || !/^\d{1,3}$/.test(index)) return undefined;
  const [power, temperature, used, total, utilization] = cells.slice(-5).map(findMeasured);
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

/** Sentences that the tool prints, and what they mean for an operator. */
const explanations: readonly [RegExp, string][] = [
  [/couldn't communicate with the NVIDIA driver/i, "the NVIDIA driver is not running"],
  [/no devices were found/i, "the NVIDIA driver sees no GPU"],
  [/unable to determine the device handle|gpu is lost/i, "a GPU does not respond; the host may need a reboot"],
  [/version mismatch/i, "the NVIDIA driver was updated but not reloaded; the host may need a reboot"],
  [/not a valid field/i, "this nvidia-smi is too old"],
];

/** @param message a line that the tool printed, or empty */
export function nvidiaSmiFailure(status: number, message: string): string {
  const known = explanations.find(([pattern]) => pattern.test(message))?.[1];
  const explanation = known ?? `it exited with status ${status}`;
  return `nvidia-smi gave no readings: ${explanation}${message === "" ? "" : ` ("${message.slice(0, 200)}")`}`;
}
