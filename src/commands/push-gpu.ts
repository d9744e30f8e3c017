import { readFileSync } from "node:fs";
import type { Environment } from "../config.ts";
import { createBackoff } from "../time/backoff.ts";
import type { SampleSet } from "../gpu-agent/gpu-entry.ts";
import { findGpuTool, type GpuTool } from "../gpu-agent/gpu-tool.ts";
import { createLatest } from "../gpu-agent/latest.ts";
import type { PushTarget } from "../gpu-agent/post-result.ts";
import { postLatest, postSamples, type TimedSamples } from "../gpu-agent/post-samples.ts";
import { readPushGpuOptions, type PushGpuOptions, UsageError } from "../gpu-agent/push-gpu-options.ts";
import { readGpus, sampleSetOf } from "../gpu-agent/read-gpus.ts";
import { ToolError } from "../gpu-agent/run-tool.ts";
import { createLogOnChange } from "../gpu-agent/log-on-change.ts";
import { pushGpuScript } from "../gpu-agent/push-gpu-script.ts";
import { createLog, type Log } from "../log/log.ts";
import { CommandError, type CommandIo } from "./command.ts";

export const summary = "send this host's GPU samples to a Tollgate";

export const help = `tollgate push-gpu --url URL [--key-file FILE] [options]

Reads the GPUs of this host once a second and posts them to the admin side of a Tollgate.
NVIDIA GPUs are read with nvidia-smi, AMD GPUs with amd-smi or rocm-smi.

  --url URL            the admin side, such as https://gate.example.com (or TOLLGATE_URL)
  --key-file FILE      a file that holds an API key
  --key KEY            the API key itself; every user of this host can read it in the list of
                       processes, so better use --key-file or the variable TOLLGATE_KEY
  --interval SECONDS   between two samples, 0.1 to 3600 (1)
  --gpu-id-offset N    added to each GPU's number, so that several hosts share the ids 0 to 255 (0)
  --once               send one sample of every GPU, and end
  --dry-run            print what would be sent instead of sending it; needs no URL and no key
  --script             print a POSIX shell script that does the same with nvidia-smi, awk and curl
  --help               print this

Status: 0 when ended by SIGTERM or SIGINT, or sent with --once; 1 where no GPUs can be read, or with
--once where the server did not take them; 2 for wrong usage.
`;

/** Waits between two tries, whether of the tool or of the server. */
const [firstRetryMs, longestRetryMs] = [1000, 30_000];

/** A driver without persistence mode takes several seconds to wake a GPU up. */
const shortestHangMs = 30_000;

/** @throws CommandError for wrong usage, and where no tool is found */
export async function run(args: string[], io: CommandIo): Promise<number> {
  try {
    const options = readPushGpuOptions(args, io.env, (file) => readFileSync(file, "utf8"));
    if (options.help) return print(io, help);
    if (options.script) return print(io, pushGpuScript);
    return await push(options, io);
  } catch (error) {
    throw error instanceof UsageError ? new CommandError(error.message, 2) : error;
  }
}

function print(io: CommandIo, text: string): number {
  io.stdout.write(text);
  return 0;
}

async function push(options: PushGpuOptions, io: CommandIo): Promise<number> {
  const tool = findGpuTool(io.env);
  if (tool === undefined) {
    throw new CommandError("no nvidia-smi, amd-smi or rocm-smi on the PATH, so no GPU can be read");
  }
  // A reader of standard output that leaves (`| head -1`) ends the work, and is no error.
  const outputClosed = new AbortController();
  io.stdout.on("error", () => outputClosed.abort());
  io.stderr.on("error", () => undefined);
  const signal = AbortSignal.any([io.signal, outputClosed.signal]);
  const log = createLog({ level: "info", format: "pretty", clock: Date.now, write: (line) => io.stderr.write(line) });
  const work = { ...options, tool, log, signal, env: withoutKey(io.env), hangMs: hangMsOf(options) };
  return options.once ? pushOnce(work, io) : pushUntilStopped(work, io);
}

interface Work extends PushGpuOptions {
  tool: GpuTool;
  log: Log;
  signal: AbortSignal;
  env: Environment;
  hangMs: number;
}

/** The tool has no use for the key. */
function withoutKey(env: Environment): Environment {
  return { ...env, TOLLGATE_KEY: undefined };
}

function hangMsOf({ intervalMs }: PushGpuOptions): number {
  return Math.max(shortestHangMs, 3 * intervalMs);
}

async function pushOnce(work: Work, io: CommandIo): Promise<number> {
  try {
    const samples = sampleSetOf(await work.tool.readOnce(work), work.gpuIdOffset);
    if (samples.length === 0) throw new ToolError("every GPU id is over 255; choose a lower --gpu-id-offset");
    if (work.server === undefined) return print(io, bodyLine(samples));
    const answer = await postSamples(work.server, samples, work.signal);
    work.log[answer.kind === "accepted" ? "info" : "error"](answer.words);
    return answer.kind === "accepted" ? 0 : 1;
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    work.log.error(error.message);
    return 1;
  }
}

async function pushUntilStopped(work: Work, io: CommandIo): Promise<number> {
  const newest = createLatest<TimedSamples>();
  const { server } = work;
  const reading = readGpus({
    ...work,
    backoff: createBackoff(firstRetryMs, longestRetryMs),
    say: createLogOnChange(work.log),
    onComplaint: (words) => work.log.warn(`${work.tool.name} says: ${words.slice(0, 200)}`),
    onSamples(samples) {
      if (server === undefined) io.stdout.write(bodyLine(samples));
      else newest.put({ samples, readAt: Date.now() });
    },
  });
  await Promise.all([reading, server === undefined ? undefined : postTo(server, newest, work)]);
  return 0;
}

async function postTo(
  server: PushTarget,
  newest: ReturnType<typeof createLatest<TimedSamples>>,
  work: Work,
): Promise<void> {
  await postLatest({
    server,
    newest,
    staleMs: Math.max(5000, 2 * work.intervalMs),
    backoff: createBackoff(firstRetryMs, longestRetryMs),
    refusedWaitMs: longestRetryMs,
    clock: Date.now,
    say: createLogOnChange(work.log),
    signal: work.signal,
  });
}

function bodyLine(samples: SampleSet): string {
  return `${JSON.stringify({ gpus: samples })}\n`;
}
