import type { Environment } from "../config.ts";
import { amdSmiMetricArguments, amdSmiNames, amdSmiReadings, amdSmiStaticArguments } from "./amd-smi.ts";
import type { ToolReading } from "./gpu-entry.ts";
import { readLines } from "./split-lines.ts";
import { findNvidiaReading, nvidiaSmiArguments, nvidiaSmiEnding } from "./nvidia-smi.ts";
import { rocmSmiArguments, rocmSmiReadings } from "./rocm-smi.ts";
import { runTool, ToolError } from "./run-tool.ts";
import { createSampleSets } from "./sample-sets.ts";
import { wait } from "../time/wait.ts";

export interface ToolRunOptions {
  env: Environment;
  signal: AbortSignal;
  /** See `ToolRun`. */
  hangMs: number;
}

export interface ToolWatchOptions extends ToolRunOptions {
  intervalMs: number;
  onReadings: (readings: ToolReading[]) => void;
  /** What the tool says about single GPUs while it goes on with the others. */
  onComplaint: (words: string) => void;
}

/** A vendor's program that tells how the GPUs of this host are. */
export interface GpuTool {
  name: string;
  /** @throws ToolError where it gives no reading */
  readOnce(options: ToolRunOptions): Promise<ToolReading[]>;
  /** Reads at every interval until the tool stops or the signal aborts. @throws ToolError where it stopped */
  watch(options: ToolWatchOptions): Promise<void>;
}

/** The first that is on the PATH: NVIDIA's, AMD's, and AMD's before ROCm 6. */
export function findGpuTool(env: Environment): GpuTool | undefined {
  const search = { PATH: env["PATH"] ?? "" };
  const [nvidiaSmi, amdSmi, rocmSmi] = ["nvidia-smi", "amd-smi", "rocm-smi"].map((name) => Bun.which(name, search));
  if (nvidiaSmi) return nvidiaSmiTool(nvidiaSmi);
  if (amdSmi) return polledTool("amd-smi", () => amdSmiReader(amdSmi));
  if (rocmSmi) return polledTool("rocm-smi", () => rocmSmiReader(rocmSmi));
  return undefined;
}

function nvidiaSmiTool(path: string): GpuTool {
  return {
    name: "nvidia-smi",
    async readOnce(options) {
      let readings: ToolReading[] = [];
      await runNvidiaSmi(path, { ...options, onReadings: (all) => (readings = all), onComplaint: () => undefined });
      return readings;
    },
    async watch(options) {
      await runNvidiaSmi(path, options);
      if (!options.signal.aborted) throw new ToolError("nvidia-smi ended by itself");
    },
  };
}

/** One child for all turns: starting the tool costs the driver up to a second of a CPU. */
async function runNvidiaSmi(
  path: string,
  options: Omit<ToolWatchOptions, "intervalMs"> & { intervalMs?: number },
): Promise<void> {
  const complaints: string[] = [];
  let turns = 0;
  const sets = createSampleSets((options.intervalMs ?? 2 * options.hangMs) / 2, (readings) => {
    if (options.signal.aborted) return;
    turns += 1;
    // Only now is it known that the tool goes on in spite of them.
    for (const complaint of complaints.splice(0)) options.onComplaint(complaint);
    options.onReadings(readings);
  });
  const { status, complaint } = await runTool({
    ...options,
    command: [path, ...nvidiaSmiArguments(options.intervalMs)],
    async read(stdout, alive) {
      for await (const line of readLines(stdout)) {
        alive();
        const reading = findNvidiaReading(line);
        if (reading !== undefined) sets.add(reading);
        else if (line.trim() !== "" && complaints.length < 100) complaints.push(line.trim());
      }
    },
  }).finally(() => sets.end());
  if (options.signal.aborted || (status === 0 && turns > 0)) return;
  throw new ToolError(nvidiaSmiEnding(status, complaints[0] ?? complaint));
}

type Reader = (options: ToolRunOptions) => Promise<ToolReading[]>;

/** AMD's tools have no loop whose output can be taken apart in every release, so they are started for each turn. */
function polledTool(name: string, createReader: () => Reader): GpuTool {
  return {
    name,
    readOnce: (options) => createReader()(options),
    async watch(options) {
      const read = createReader();
      while (!options.signal.aborted) {
        const turnEnds = wait(options.intervalMs, options.signal);
        const readings = await read(options);
        if (!options.signal.aborted) options.onReadings(readings);
        await turnEnds;
      }
    },
  };
}

function amdSmiReader(path: string): Reader {
  let names: Map<number, string> | undefined;
  return async (options) => {
    names ??= await readJson("amd-smi", [path, ...amdSmiStaticArguments], options, amdSmiNames);
    const known = names;
    return readJson("amd-smi", [path, ...amdSmiMetricArguments], options, (text) => amdSmiReadings(text, known));
  };
}

function rocmSmiReader(path: string): Reader {
  return (options) => readJson("rocm-smi", [path, ...rocmSmiArguments], options, rocmSmiReadings);
}

/** @throws ToolError where the tool fails, or prints what `parse` finds nothing in */
async function readJson<T extends ToolReading[] | Map<number, string>>(
  name: string,
  command: string[],
  options: ToolRunOptions,
  parse: (text: string) => T,
): Promise<T> {
  let text = "";
  const { status, complaint } = await runTool({
    ...options,
    command,
    read: async (stdout) => {
      text = await new Response(stdout).text();
    },
  });
  const found = findParsed(text, parse);
  if (found !== undefined && ("size" in found || found.length > 0)) return found;
  const said = complaint === "" ? text.trim().split("\n")[0]?.slice(0, 200) : complaint.slice(0, 200);
  throw new ToolError(`${name} gives no readings: it ended with status ${status}${said ? ` ("${said}")` : ""}`);
}

function findParsed<T>(text: string, parse: (text: string) => T): T | undefined {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
