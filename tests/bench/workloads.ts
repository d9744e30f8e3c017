import { conversationBodies, type ConversationShape } from "./agent-bodies.ts";
import type { ThreadCpu } from "./processes.ts";
import type { Target } from "./targets.ts";
import type { LoadResult, LoadSpec } from "./load/spec.ts";

/** The result of one run with one target. */
export interface Run {
  result: LoadResult;
  /** CPU time of the target's processes during the load. */
  cpuUs: number;
  pageFaults: number;
  contextSwitches: number;
  /** Undefined where they are not counted. */
  instructions: number | undefined;
  /** The part of each thread. */
  threadCpuUs: ThreadCpu;
  /** The most resident memory while it ran. */
  peakMb: number;
}

export interface Figure {
  name: string;
  unit: "µs" | "ms" | "MB" | "1/s" | "";
  /** Lower is better, except for rates. */
  of: (run: Run) => number;
}

export interface Workload {
  name: string;
  title: string;
  /** Names of targets; undefined: all that forward requests. */
  only?: readonly string[];
  /** Whether `--quick` includes it. */
  quick: boolean;
  load: Partial<LoadSpec>;
  /** Number of keys, used in turn. */
  keys?: number;
  /** Sends the console's slowest requests meanwhile. */
  console?: boolean;
  /** The expected status of every response, by default 200. */
  status?: number;
  figures: readonly Figure[];
}

const message = { role: "user", content: "Say hello to the world." };
const smallBody = JSON.stringify({ model: "m", messages: [message], max_tokens: 16 });
const largeBody = JSON.stringify({
  model: "m",
  messages: [{ role: "user", content: "The quick brown fox jumps over the lazy dog. ".repeat(23_000) }, message],
  max_tokens: 16,
});
const streamBody = (tokens: number): string =>
  JSON.stringify({
    model: "m",
    messages: [message],
    max_tokens: tokens,
    stream: true,
    stream_options: { include_usage: true },
  });

/** Events of a simulated stream in addition to its tokens: the role, the finish reason, the usage and `[DONE]`. */
const framesBesideTokens = 4;

const cpuPerRequest: Figure = {
  name: "CPU per request",
  unit: "µs",
  of: ({ cpuUs, result }) => cpuUs / responseCount(result),
};
/** Of the threads that a gateway on Bun has. */
const threadCpuPerRequest = (
  [
    ["main", "main thread"],
    ["HTTP Client", "HTTP client thread"],
    ["Worker", "storage thread"],
  ] as const
).map(([thread, name]): Figure => ({
  name: `CPU per request, ${name}`,
  unit: "µs",
  of: ({ threadCpuUs: cpu, result }) => (cpu[thread] ?? 0) / responseCount(result),
}));
const requestsPerSecond: Figure = {
  name: "requests per second",
  unit: "1/s",
  of: ({ result }) => responseCount(result) / result.seconds,
};
const latency: readonly Figure[] = [
  { name: "latency p50", unit: "ms", of: ({ result }) => result.latency.p50 / 1000 },
  { name: "latency p99", unit: "ms", of: ({ result }) => result.latency.p99 / 1000 },
];

/** One connection after the other would leave the proxy idle between two; more would only queue. */
const conversationConnections = 4;

function conversation(
  name: string,
  title: string,
  requests: number,
  shape: Omit<ConversationShape, "turns">,
): Workload {
  return {
    name,
    title,
    quick: name === "agent-100",
    load: {
      get body() {
        return conversationBodies({ ...shape, turns: 8 });
      },
      connections: conversationConnections,
      requests,
    },
    figures: [cpuPerRequest],
  };
}

/** Conversations that grow by a turn with each request. */
const conversations: readonly Workload[] = [
  conversation("agent-8", "turns of an agent, 8 kB", 2000, { bytes: 8000, vocabulary: "english", tools: 2 }),
  conversation("agent-100", "turns of an agent, 100 kB", 800, { bytes: 100_000, vocabulary: "english", tools: 40 }),
  conversation("agent-400", "turns of an agent, 400 kB", 320, { bytes: 400_000, vocabulary: "english", tools: 40 }),
  conversation("agent-2000", "turns of an agent, 2 MB", 80, { bytes: 2_000_000, vocabulary: "english", tools: 40 }),
  conversation("korean-100", "turns of a Korean chat, 100 kB", 800, { bytes: 100_000, vocabulary: "korean", tools: 0 }),
  conversation("escaped-100", "turns of a Korean agent, escaped, 100 kB", 800, {
    bytes: 100_000,
    vocabulary: "korean",
    escaped: true,
    tools: 10,
  }),
];

const smallAt = (connections: number, further: readonly Figure[] = []): Workload => ({
  name: `small-${connections}`,
  title: `small completions, ${connections} connections`,
  quick: connections === 32,
  load: { body: smallBody, connections, requests: 10_000 },
  figures: [cpuPerRequest, ...further, requestsPerSecond],
});
export const small: Workload = smallAt(32, threadCpuPerRequest);

export const workloads: readonly Workload[] = [
  {
    name: "one",
    title: "small completions, 1 connection",
    quick: true,
    load: { body: smallBody, connections: 1, requests: 5000 },
    figures: [...latency, cpuPerRequest, ...threadCpuPerRequest],
  },
  {
    name: "rate",
    title: "small completions, 400 requests/s",
    quick: true,
    load: { body: smallBody, connections: 64, requests: 1600, perSecond: 400 },
    figures: [...latency, cpuPerRequest],
  },
  smallAt(8),
  small,
  smallAt(128),
  smallAt(512),
  {
    name: "large",
    title: "1 MB request bodies",
    quick: false,
    load: { body: largeBody, connections: 8, requests: 200 },
    figures: [cpuPerRequest],
  },
  ...conversations,
  {
    name: "keys",
    title: "small completions, 10,000 keys",
    quick: false,
    only: ["Tollgate"],
    keys: 10_000,
    load: { body: smallBody, connections: 32, requests: 10_000 },
    figures: [cpuPerRequest, requestsPerSecond],
  },
  {
    name: "wrong-keys",
    title: "wrong keys",
    quick: true,
    only: ["nginx, key map", "Tollgate"],
    load: { body: smallBody, connections: 32, requests: 5000, keys: ["wrong"] },
    status: 401,
    figures: [cpuPerRequest],
  },
  // Each of these sends no more frames in total than the core of the backend and the load generator can handle.
  streams({ count: 100, perSecond: 20, tokens: 60, quick: true }),
  streams({ count: 500, perSecond: 20, tokens: 60, quick: false }),
  streams({ count: 1000, perSecond: 15, tokens: 40, quick: false }),
  streams({ count: 3000, perSecond: 5, tokens: 15, quick: false }),
  {
    ...streams({ count: 500, perSecond: 20, tokens: 60, quick: false }),
    name: "console",
    title: "500 streams during the console's slowest requests",
    only: ["Tollgate"],
    console: true,
  },
];

interface StreamOptions {
  count: number;
  perSecond: number;
  tokens: number;
  quick: boolean;
}

function streams({ count, perSecond, tokens, quick }: StreamOptions): Workload {
  const frames = count * (tokens + framesBesideTokens);
  return {
    name: `streams-${count}`,
    title: `${count} streams, ${perSecond} frames/s each`,
    quick,
    load: {
      body: streamBody(tokens),
      headers: [`x-simulate: rate=${perSecond}`],
      connections: count,
      requests: count,
      stallMs: 200 + 1000 / perSecond,
    },
    figures: [
      { name: "CPU per frame", unit: "µs", of: ({ cpuUs, result }) => cpuUs / result.frames },
      { name: "frames lost", unit: "", of: ({ result }) => frames - result.frames },
      { name: "stalls over 200 ms", unit: "", of: ({ result }) => result.stalls },
      {
        name: "frame delay p99",
        unit: "ms",
        of: ({ result }) => Math.max(0, result.gap.p99 / 1000 - 1000 / perSecond),
      },
      { name: "first byte p50", unit: "ms", of: ({ result }) => result.firstByte.p50 / 1000 },
      { name: "memory", unit: "MB", of: ({ peakMb }) => peakMb },
    ],
  };
}

/** Before all others: those that are measured are too few to warm up what runs once for each stream. */
export const warmingUp: readonly Workload[] = [small, streams({ count: 32, perSecond: 1e6, tokens: 1, quick: false })];

/** It differs from the plain passthrough only for streams. */
const streamsOnly = "Bun transform";

export function appliesTo({ only, load }: Workload, { name }: Target): boolean {
  if (name === streamsOnly && load.stallMs === undefined) return false;
  return only === undefined || only.includes(name);
}

export function responseCount({ statuses }: LoadResult): number {
  return Object.values(statuses).reduce((sum, count) => sum + count, 0);
}
