import type { Backoff } from "../time/backoff.ts";
import { findGpuEntry, type ToolReading, type SampleSet } from "./gpu-entry.ts";
import type { GpuTool, ToolWatchOptions } from "./gpu-tool.ts";
import { ToolError } from "./run-tool.ts";
import type { LogOnChange } from "./log-on-change.ts";
import { wait } from "../time/wait.ts";

export interface ReadGpusOptions extends Omit<ToolWatchOptions, "onReadings"> {
  tool: GpuTool;
  gpuIdOffset: number;
  backoff: Backoff;
  say: LogOnChange;
  onSamples: (samples: SampleSet) => void;
}

/** Different complaints that are told; a tool that finds new words every second must not fill the log. */
const mostComplaints = 20;

/** Reads the GPUs until the signal aborts, and starts the tool again whenever it stops. */
export async function readGpus({
  tool,
  backoff,
  say,
  onSamples,
  onComplaint,
  ...options
}: ReadGpusOptions): Promise<void> {
  const complaints = new Set<string>();
  const tellReadings = createReadingsTeller(tool.name, say);
  while (!options.signal.aborted) {
    try {
      await tool.watch({
        ...options,
        onReadings(readings) {
          backoff.reset();
          const samples = sampleSetOf(readings, options.gpuIdOffset);
          tellReadings(readings.length, samples.length);
          if (samples.length > 0) onSamples(samples);
        },
        onComplaint(words) {
          if (complaints.has(words) || complaints.size >= mostComplaints) return;
          complaints.add(words);
          onComplaint(words);
        },
      });
    } catch (error) {
      if (!(error instanceof ToolError)) throw error;
      if (options.signal.aborted) return;
      say("warn", `${error.message}; it is started again until it does`);
    }
    await wait(backoff.next(), options.signal);
  }
}

/** Tells how many GPUs are read, once two sets in a row agree: a slow driver can tear sets apart differently each time. */
function createReadingsTeller(tool: string, say: LogOnChange): (read: number, taken: number) => void {
  let lastRead: number | undefined;
  return (read, taken) => {
    if (lastRead === undefined || lastRead === read) say(...stateOf(tool, read, taken));
    lastRead = read;
  };
}

export function sampleSetOf(readings: readonly ToolReading[], gpuIdOffset: number): SampleSet {
  return readings.flatMap((reading) => findGpuEntry(reading, gpuIdOffset) ?? []);
}

function stateOf(tool: string, read: number, taken: number): Parameters<LogOnChange> {
  const gpus = `${read} GPU${read === 1 ? "" : "s"}`;
  if (taken === read) return ["info", `Reading ${gpus} with ${tool}`];
  return ["warn", `Reading ${gpus} with ${tool}, ${read - taken} left out: ids end at 255, choose a lower offset`];
}
