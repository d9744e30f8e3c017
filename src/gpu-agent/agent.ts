// `push-gpu`: reads the GPUs of a host by its vendor's tool, and posts samples to a server, of which it knows the HTTP
// API.
//
//   tool:    runs -> has stopped, hangs, or is stuck in the driver -> runs again, after a wait
//   samples: read -> latest -> posted, or dropped: too old, replaced by newer ones, or refused
//
// It keeps true: to read does not wait for a server that is slow or away (`post-samples.ts`); one post at a time. An outage
// is one line of the log, not one a second. The key is only for the host that the operator named (`post-samples.ts`).

import type { Environment } from "../config/config.ts";
import type { Log } from "../log/log.ts";
import { createBackoff } from "../time/wait.ts";
import type { SampleBody, SampleSet } from "./gpu-entry.ts";
import type { GpuTool } from "./gpu-tool.ts";
import { createLogOnChange } from "./log-on-change.ts";
import type { PushTarget } from "./post-result.ts";
import { createLatest, postLatest, postSamples, type TimedSamples } from "./post-samples.ts";
import { readGpus, sampleSetOf } from "./read-gpus.ts";
import { ToolError } from "./run-tool.ts";

/** Delays before a retry, of the tool and of the server. */
const [firstRetryMs, slowestRetryMs] = [1000, 30_000];

/** Without persistence mode, the driver takes several seconds to wake a GPU. */
const minOutputTimeoutMs = 30_000;

interface AgentOptions {
  tool: GpuTool;
  intervalMs: number;
  gpuIdOffset: number;
  /** Names this host in the console. */
  host: string | undefined;
  /** Undefined if samples are only printed. */
  target: PushTarget | undefined;
  print: (line: string) => void;
  log: Log;
  signal: AbortSignal;
  /** Of the tool. */
  env: Environment;
}

/** @returns whether the GPUs were read, and the server has accepted their samples */
export async function pushOnce(options: AgentOptions): Promise<boolean> {
  const { log, target, tool, gpuIdOffset, signal } = options;
  try {
    const samples = sampleSetOf(await tool.readOnce({ ...options, ...timeoutOf(options) }), gpuIdOffset);
    if (samples.length === 0) throw new ToolError("every GPU id is over 255; use a lower --gpu-id-offset");
    const body = bodyOf(samples, options);
    if (target === undefined) {
      options.print(lineOf(body));
      return true;
    }
    const result = await postSamples(target, body, signal);
    if (result.kind === "accepted") {
      log.info("Sent samples", { url: target.url });
      return true;
    }
    log.error("Cannot send samples", { url: target.url, reason: result.reason });
  } catch (error) {
    if (!(error instanceof ToolError)) throw error;
    log.error("Cannot read GPUs", { reason: error.message });
  }
  return false;
}

export async function pushUntilStopped(options: AgentOptions): Promise<void> {
  const { log, target, tool, intervalMs, signal } = options;
  const latest = createLatest<TimedSamples>();
  const reading = readGpus({
    ...options,
    ...timeoutOf(options),
    backoff: createBackoff(firstRetryMs, slowestRetryMs),
    logOnChange: createLogOnChange(log),
    onToolMessage: (text) => log.warn("Message from the tool", { tool: tool.name, text: text.slice(0, 200) }),
    onSamples(samples) {
      const body = bodyOf(samples, options);
      if (target === undefined) options.print(lineOf(body));
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
}

const timeoutOf = ({ intervalMs }: AgentOptions): { outputTimeoutMs: number } => ({
  outputTimeoutMs: Math.max(minOutputTimeoutMs, 3 * intervalMs),
});

const bodyOf = (gpus: SampleSet, { host }: AgentOptions): SampleBody => ({
  ...(host !== undefined && { host }),
  gpus,
});

const lineOf = (body: SampleBody): string => `${JSON.stringify(body)}\n`;
