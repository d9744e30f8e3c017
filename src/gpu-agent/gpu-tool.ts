import type { Environment } from "../config/config.ts";
import { wait } from "../time/wait.ts";
import { amdSmiMetricArguments, amdSmiNames, amdSmiReadings, amdSmiStaticArguments } from "./amd-smi.ts";
import type { ToolReading } from "./gpu-entry.ts";
import { findNvidiaReading, nvidiaSmiArguments, nvidiaSmiFailure } from "./nvidia-smi.ts";
import { runTool, ToolError, type ToolRunOptions } from "./run-tool.ts";

export interface ToolWatchOptions extends ToolRunOptions {
  intervalMs: number;
  onReadings: (readings: ToolReading[]) => void;
  /** Text about single GPUs that the tool prints while it continues with the others. */
  onToolMessage: (text: string) => void;
}

/** A vendor's program that reports the state of this host's GPUs. */
export interface GpuTool {
  name: string;
  /** @throws ToolError if the tool gives no reading */
  readOnce(options: ToolRunOptions): Promise<ToolReading[]>;
  /** Reads at every interval until the tool stops or the signal aborts. @throws ToolError if the tool stopped */
  watch(options: ToolWatchOptions): Promise<void>;
}

/** The first one on the PATH: NVIDIA's, or AMD's since ROCm 6. */
export function findGpuTool(env: Environment): GpuTool | undefined {
  const search = { PATH: env["PATH"] ?? "" };
  const [nvidiaSmi, amdSmi] = ["nvidia-smi", "amd-smi"].map((name) => Bun.which(name, search));
  if (nvidiaSmi) return nvidiaSmiTool(nvidiaSmi);
  return amdSmi ? amdSmiTool(amdSmi) : undefined;
}

function nvidiaSmiTool(path: string): GpuTool {
  return {
    name: "nvidia-smi",
    // Named one by one: an interval among a caller's other options would start a loop that never ends.
    async readOnce({ env, signal, outputTimeoutMs }) {
      let readings: ToolReading[] = [];
      const onReadings = (all: ToolReading[]): void => void (readings = all);
      await runNvidiaSmi(path, { env, signal, outputTimeoutMs, onReadings, onToolMessage: () => undefined });
      return readings;
    },
    async watch(options) {
      const status = await runNvidiaSmi(path, options);
      if (!options.signal.aborted && !endsForOneGpu.has(status)) throw new ToolError("nvidia-smi exited unexpectedly");
    },
  };
}

const maxPendingMessages = 100;

/** nvidia-smi(1): a damaged infoROM, and a GPU that fell off its bus. Readings of the others came before. */
const endsForOneGpu = new Set([14, 15]);

/** One process for all rounds: a start of the tool costs up to a second of CPU time in the driver. @returns its exit status */
async function runNvidiaSmi(
  path: string,
  options: Omit<ToolWatchOptions, "intervalMs"> & { intervalMs?: number },
): Promise<number> {
  const messages: string[] = [];
  let rounds = 0;
  const sets = createSampleSets((options.intervalMs ?? 2 * options.outputTimeoutMs) / 2, (readings) => {
    if (options.signal.aborted) return;
    rounds += 1;
    // Readings after the messages show that the tool did not stop because of them.
    for (const message of messages.splice(0)) options.onToolMessage(message);
    options.onReadings(readings);
  });
  const { status, errorLine } = await runTool({
    ...options,
    command: [path, ...nvidiaSmiArguments(options.intervalMs)],
    async read(stdout, alive) {
      for await (const line of splitLines(stdout)) {
        alive();
        const reading = findNvidiaReading(line);
        if (reading !== undefined) sets.add(reading);
        else if (line.trim() !== "" && messages.length < maxPendingMessages) messages.push(line.trim());
      }
    },
  }).finally(() => sets.end());
  if (rounds > 0) for (const message of messages) options.onToolMessage(message);
  if (options.signal.aborted || (rounds > 0 && (status === 0 || endsForOneGpu.has(status)))) return status;
  throw new ToolError(nvidiaSmiFailure(status, messages[0] ?? errorLine));
}

/** AMD's tool has no loop mode with an output that can be split in every release, so each round starts it. */
function amdSmiTool(path: string): GpuTool {
  let names: Map<number, string> | undefined;
  async function readOnce(options: ToolRunOptions): Promise<ToolReading[]> {
    names ??= await readJson([path, ...amdSmiStaticArguments], options, amdSmiNames);
    const known = names;
    return readJson([path, ...amdSmiMetricArguments], options, (text) => amdSmiReadings(text, known));
  }
  return {
    name: "amd-smi",
    readOnce,
    async watch(options) {
      // It may be another driver since the tool stopped.
      names = undefined;
      while (!options.signal.aborted) {
        const interval = wait(options.intervalMs, options.signal);
        const readings = await readOnce(options);
        if (!options.signal.aborted) options.onReadings(readings);
        await interval;
      }
    },
  };
}

/** @throws ToolError if the tool fails, or `parse` finds nothing in its output */
async function readJson<T extends ToolReading[] | Map<number, string>>(
  command: string[],
  options: ToolRunOptions,
  parse: (text: string) => T,
): Promise<T> {
  let text = "";
  const { status, errorLine } = await runTool({
    ...options,
    command,
    read: async (stdout) => {
      text = await new Response(stdout).text();
    },
  });
  const found = findParsed(text, parse);
  if (found !== undefined && ("size" in found || found.length > 0)) return found;
  const detail = errorLine === "" ? text.trim().split("\n")[0]?.slice(0, 200) : errorLine.slice(0, 200);
  throw new ToolError(`amd-smi gave no readings and exited with status ${status}${detail ? ` ("${detail}")` : ""}`);
}

const maxJsonStarts = 20;

/** Some releases print warnings before the JSON, perhaps in brackets themselves. */
function findParsed<T>(text: string, parse: (text: string) => T): T | undefined {
  for (const { index } of text.matchAll(/^[[{]/gm).take(maxJsonStarts)) {
    try {
      return parse(text.slice(index));
    } catch {}
  }
  return undefined;
}

/** Far more than a line about one GPU; bounds the memory for a tool that prints no line feed. */
const maxLineLength = 8192;

/**
 * Yields whole lines, without their `\n` or `\r\n`. Text after the last line feed is dropped: if a tool is killed in the
 * middle of a number, the shorter number looks valid.
 */
export async function* splitLines(bytes: ReadableStream<Uint8Array>): AsyncGenerator<string, void, void> {
  const decoder = new TextDecoder();
  let pending = "";
  for await (const chunk of bytes) {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split("\n");
    pending = (lines.pop() ?? "").slice(0, maxLineLength);
    for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}

/**
 * Groups readings, which arrive one by one in rising order of index, into one set per round of the tool.
 * A set ends at the last GPU of the previous round, at an index that does not rise, or after a silence. The first rule
 * adds no delay; the other two cover a GPU that drops out.
 * @param silenceMs shorter than the pause between rounds, longer than the pause between two GPUs of one round
 */
export function createSampleSets(silenceMs: number, onSet: (readings: ToolReading[]) => void) {
  let pending: ToolReading[] = [];
  let lastIndexOfRound: number | undefined;
  let silence: NodeJS.Timeout | undefined;

  function end(): void {
    clearTimeout(silence);
    if (pending.length === 0) return;
    const readings = pending;
    pending = [];
    lastIndexOfRound = readings.at(-1)?.index;
    onSet(readings);
  }

  return {
    add(reading: ToolReading): void {
      const previous = pending.at(-1);
      if (previous !== undefined && reading.index <= previous.index) end();
      pending.push(reading);
      if (reading.index === lastIndexOfRound) return end();
      clearTimeout(silence);
      silence = setTimeout(end, silenceMs);
    },
    /** Passes on an unfinished set, when no more readings will come. */
    end,
  };
}
