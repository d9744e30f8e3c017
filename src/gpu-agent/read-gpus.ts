import { type Backoff, wait } from "../time/wait.ts";
import { findGpuEntry, type SampleSet, type ToolReading } from "./gpu-entry.ts";
import type { GpuTool, ToolWatchOptions } from "./gpu-tool.ts";
import type { LogOnChange } from "./log-on-change.ts";
import { ToolError } from "./run-tool.ts";

export interface ReadGpusOptions extends Omit<ToolWatchOptions, "onReadings"> {
  tool: GpuTool;
  gpuIdOffset: number;
  backoff: Backoff;
  logOnChange: LogOnChange;
  onSamples: (samples: SampleSet) => void;
}

/** Distinct messages that are passed on, so that a tool that varies its text cannot fill the log. */
const maxToolMessages = 20;

/** 24 days, which is the longest that a timer takes. */
const longestWaitMs = 2 ** 31 - 1;

/** Reads the GPUs until the signal aborts, and restarts the tool whenever it stops. */
export async function readGpus(options: ReadGpusOptions): Promise<void> {
  const { tool, backoff, logOnChange, onSamples, onToolMessage, gpuIdOffset, signal } = options;
  const toolMessages = new Set<string>();
  const onGpuCount = createGpuCountLog(tool.name, logOnChange);
  while (!signal.aborted) {
    try {
      await tool.watch({
        ...options,
        onReadings(readings) {
          backoff.reset();
          const samples = sampleSetOf(readings, gpuIdOffset);
          onGpuCount(readings.length, samples.length);
          if (samples.length > 0) onSamples(samples);
        },
        onToolMessage(text) {
          if (toolMessages.has(text) || toolMessages.size >= maxToolMessages) return;
          toolMessages.add(text);
          onToolMessage(text);
        },
      });
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      if (signal.aborted) return;
      const { message: reason, stuckUntil } = error;
      const next = stuckUntil === undefined ? "restarting the tool" : "waiting for the stuck tool to exit";
      logOnChange("warn", `Cannot read GPUs; ${next}`, { reason });
      // Another one would get stuck too, and none of them can be killed.
      if (stuckUntil !== undefined) await Promise.race([stuckUntil, wait(longestWaitMs, signal)]);
    }
    await wait(backoff.next(), signal);
  }
}

/** Logs the number of GPUs once two sets in a row agree, because a slow driver can split a set differently each time. */
function createGpuCountLog(tool: string, logOnChange: LogOnChange): (read: number, accepted: number) => void {
  let previous: number | undefined;
  return (gpus, accepted) => {
    const [isSettled, leftOut] = [previous === undefined || previous === gpus, gpus - accepted];
    previous = gpus;
    if (!isSettled) return;
    if (leftOut === 0) logOnChange("info", "Reading GPUs", { tool, gpus });
    else logOnChange("warn", "GPU ids over 255 are left out; use a lower --gpu-id-offset", { tool, gpus, leftOut });
  };
}

export function sampleSetOf(readings: readonly ToolReading[], gpuIdOffset: number): SampleSet {
  return readings.flatMap((reading) => findGpuEntry(reading, gpuIdOffset) ?? []);
}
