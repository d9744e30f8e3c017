import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { Environment } from "../config/config.ts";
import type { SampleBody, SampleSet } from "../gpu-agent/gpu-entry.ts";
import { findGpuTool, type GpuTool } from "../gpu-agent/gpu-tool.ts";
import { createLatest, postLatest, postSamples, type TimedSamples } from "../gpu-agent/post-samples.ts";
import { createLogOnChange } from "../gpu-agent/log-on-change.ts";
import { readGpus, sampleSetOf } from "../gpu-agent/read-gpus.ts";
import { ToolError } from "../gpu-agent/run-tool.ts";
import { createLog, type Log } from "../log/log.ts";
import { createBackoff } from "../time/wait.ts";
import { CommandError, type CommandIo } from "./command.ts";
import { type PushGpuOptions, readPushGpuOptions } from "./push-gpu-options.ts";

export const summary = "send GPU samples of this host to a Tollgate";

export const chapter = "Watching";

export const help = `tollgate push-gpu --url URL [--key-file FILE] [OPTIONS]

Reads the GPUs of this host once a second and posts the samples to the admin side of a Tollgate.
Uses nvidia-smi for NVIDIA GPUs, and amd-smi for AMD GPUs.

  --url URL            address of the admin side, such as https://gate.example.com (or TOLLGATE_URL)
  --key-file FILE      file that contains an API key
  --key KEY            an API key; the process list shows it to every user of this host, so prefer
                       --key-file or the environment variable TOLLGATE_KEY
  --interval SECONDS   time between two samples, 0.1 to 3600 (default: 1)
  --gpu-id-offset N    added to each GPU's number, so that hosts use different ids from 0 to 255
                       (default: 0)
  --host NAME          name of this host in the console (default: its host name)
  --once               send one sample of every GPU, then exit
  --dry-run            print the samples instead of sending them; requires no URL and no key
  --help               print this help

Exit status: 0 after SIGTERM, SIGINT or SIGHUP, or if --once succeeded; 1 if no GPU can be read, or if
the server did not accept the samples of --once; 2 for wrong usage.
`;

/** Delays before a retry, of the tool and of the server. */
const [firstRetryMs, slowestRetryMs] = [1000, 30_000];

/** Without persistence mode, the driver takes several seconds to wake a GPU. */
const minOutputTimeoutMs = 30_000;

/** @throws CommandError for wrong usage, or if there is no tool */
export async function run(args: string[], io: CommandIo): Promise<number> {
  const readFile = (file: string): string => readFileSync(file, "utf8");
  const options = readPushGpuOptions(args, { env: io.env, readFile, hostName: hostname() });
  const tool = findGpuTool(io.env);
  if (tool === undefined)
    throw new CommandError("PATH: contains no nvidia-smi or amd-smi; add one of them (handbook: GPUs)");
  // A reader that closes standard output (`| head -1`) stops the command; it is not an error.
  const outputClosed = new AbortController();
  io.stdout.on("error", () => outputClosed.abort());
  io.stderr.on("error", () => undefined);
  const signal = AbortSignal.any([io.signal, outputClosed.signal]);
  const log = createLog({ level: "info", format: "pretty", clock: Date.now, write: (line) => io.stderr.write(line) });
  const outputTimeoutMs = Math.max(minOutputTimeoutMs, 3 * options.intervalMs);
  // The tool does not need the key.
  const context = { ...options, tool, log, signal, env: { ...io.env, TOLLGATE_KEY: undefined }, outputTimeoutMs };
  return options.once ? pushOnce(context, io) : pushUntilStopped(context, io);
}

interface PushContext extends PushGpuOptions {
  tool: GpuTool;
  log: Log;
  signal: AbortSignal;
  env: Environment;
  outputTimeoutMs: number;
}

async function pushOnce(context: PushContext, io: CommandIo): Promise<number> {
  const { log, target } = context;
  try {
    const samples = sampleSetOf(await context.tool.readOnce(context), context.gpuIdOffset);
    if (samples.length === 0) throw new ToolError("every GPU id is over 255; use a lower --gpu-id-offset");
    const body = bodyOf(samples, context);
    if (target === undefined) {
      io.stdout.write(lineOf(body));
      return 0;
    }
    const result = await postSamples(target, body, context.signal);
    if (result.kind === "accepted") {
      log.info("Sent samples", { url: target.url });
      return 0;
    }
    log.error("Cannot send samples", { url: target.url, reason: result.reason });
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    log.error("Cannot read GPUs", { reason: error.message });
  }
  return 1;
}

async function pushUntilStopped(context: PushContext, io: CommandIo): Promise<number> {
  const { log, target, tool, intervalMs, signal } = context;
  const latest = createLatest<TimedSamples>();
  const reading = readGpus({
    ...context,
    backoff: createBackoff(firstRetryMs, slowestRetryMs),
    logOnChange: createLogOnChange(log),
    onToolMessage: (text) => log.warn("Message from the tool", { tool: tool.name, text: text.slice(0, 200) }),
    onSamples(samples) {
      const body = bodyOf(samples, context);
      if (target === undefined) io.stdout.write(lineOf(body));
      else latest.put({ body, readAt: Date.now() });
    },
  });
  const posting = target && {
    target,
    latest,
    staleMs: Math.max(5000, 2 * intervalMs),
    backoff: createBackoff(firstRetryMs, slowestRetryMs),
    rejectedWaitMs: slowestRetryMs,
    clock: Date.now,
    logOnChange: createLogOnChange(log),
    signal,
  };
  await Promise.all([reading, posting && postLatest(posting)]);
  return 0;
}

const bodyOf = (gpus: SampleSet, { host }: Pick<PushContext, "host">): SampleBody => ({
  ...(host !== undefined && { host }),
  gpus,
});

const lineOf = (body: SampleBody): string => `${JSON.stringify(body)}\n`;
