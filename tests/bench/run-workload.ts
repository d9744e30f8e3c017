import { join } from "node:path";
import { type Target, benchFolder } from "./targets.ts";
import type { LoadResult, LoadSpec } from "./load/spec.ts";
import type { Workload, Run } from "./workloads.ts";
import {
  contextSwitches,
  countEvents,
  cpuUs,
  forgetPeaks,
  loadCore,
  pageFaults,
  residentMb,
  type ThreadCpu,
  threadCpuUs,
} from "./processes.ts";

const limitMs = 30_000;
const warmUpMs = 8_000;
/** The CPU time after the last response also counts. */
const settleMs = 200;

/** The target's counters differ from what the client read, or its responses have unexpected statuses. */
export class WrongCount extends Error {
  override name = "WrongCount";
}

/** @throws WrongCount */
export async function runWorkload(workload: Workload, target: Target, keys: readonly string[]): Promise<Run> {
  const countedBefore = await readTotals(target);
  const consoleLoad = workload.console === true ? requestConsole(target) : undefined;
  const { pid } = target.process;
  const before = { cpuUs: cpuUs(pid), pageFaults: pageFaults(pid), contextSwitches: contextSwitches(pid) };
  const threadsBefore = threadCpuUs(pid);
  const endCounting = countEvents(pid);
  forgetPeaks(pid);
  const result = await load(workload, target, keys);
  const memory = residentMb(pid, "most");
  await consoleLoad?.stop();
  await Bun.sleep(settleMs);
  const instructions = await endCounting();
  const threads = differenceOf(threadCpuUs(pid), threadsBefore);
  const counters = {
    cpuUs: cpuUs(pid) - before.cpuUs,
    pageFaults: pageFaults(pid) - before.pageFaults,
    contextSwitches: contextSwitches(pid) - before.contextSwitches,
  };
  const run = { result, ...counters, instructions, threadCpuUs: threads, peakMb: memory };
  checkStatuses(workload, target, result);
  await checkCounters(target, countedBefore, result);
  return run;
}

const differenceOf = (after: ThreadCpu, before: ThreadCpu): ThreadCpu =>
  Object.fromEntries(Object.entries(after).map(([name, cpu]) => [name, cpu - (before[name] ?? 0)]));

/** Excludes the first seconds of the runtime from the figures, because a gateway runs for weeks. */
export async function warmUp(workload: Workload, target: Target, key: string): Promise<void> {
  await load({ ...workload, load: { ...workload.load, requests: 1_000_000, limitMs: warmUpMs } }, target, [key]);
}

/** Each run has its own load generator process, so that none is affected by another one's garbage. */
async function load(workload: Workload, target: Target, keys: readonly string[]): Promise<LoadResult> {
  const spec: LoadSpec = {
    port: target.port,
    path: "/v1/chat/completions",
    keys,
    body: "",
    connections: 1,
    requests: 1,
    perSecond: 0,
    stallMs: 0,
    limitMs,
    ...workload.load,
    headers: [...target.headers, ...(workload.load.headers ?? [])],
  };
  const child = Bun.spawn(["taskset", "-c", String(loadCore), process.execPath, join(benchFolder, "load/main.ts")], {
    stdin: Buffer.from(JSON.stringify(spec)),
    stdout: "pipe",
    stderr: "inherit",
  });
  const kill = (): void => child.kill("SIGKILL");
  process.on("exit", kill);
  try {
    return (await new Response(child.stdout).json()) as LoadResult;
  } finally {
    process.off("exit", kill);
  }
}

function checkStatuses({ name, load: { requests }, status = 200 }: Workload, target: Target, result: LoadResult): void {
  if (result.statuses[status] === requests) return;
  throw new WrongCount(
    `${name}, ${target.name}: expected ${requests} responses with ${status}, got ${JSON.stringify(result)}`,
  );
}

interface Totals {
  requests: number;
  inputTokens: number;
  outputTokens: number;
}

/** The totals of all keys from the admin API; undefined if the target has none. */
async function readTotals({ admin }: Target): Promise<Totals | undefined> {
  const keys = await admin?.listKeys();
  return keys?.reduce(
    (sum, key) => ({
      requests: sum.requests + key.total_request_count,
      inputTokens: sum.inputTokens + key.total_input_tokens,
      outputTokens: sum.outputTokens + key.total_output_tokens,
    }),
    { requests: 0, inputTokens: 0, outputTokens: 0 },
  );
}

async function checkCounters(target: Target, before: Totals | undefined, { usage }: LoadResult): Promise<void> {
  const after = await readTotals(target);
  if (before === undefined || after === undefined) return;
  const counted = {
    requests: after.requests - before.requests,
    inputTokens: after.inputTokens - before.inputTokens,
    outputTokens: after.outputTokens - before.outputTokens,
  };
  if (Bun.deepEquals(counted, usage)) return;
  throw new WrongCount(`${target.name} counted ${JSON.stringify(counted)}, the client ${JSON.stringify(usage)}`);
}

const heavyPaths = [
  "/api/usage/history?days=30&bucket_minutes=1",
  "/api/usage/daily?days=365",
  "/api/gpu-stats/power-history?days=30&bucket_minutes=1",
  "/api/keys",
];

function requestConsole({ admin }: Target): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const done = (async () => {
    while (!stopped.signal.aborted) {
      for (const path of heavyPaths) await (await admin?.request("GET", path))?.bytes();
    }
  })();
  return {
    stop() {
      stopped.abort();
      return done;
    },
  };
}

/** Creates keys for a workload that uses several. */
export async function createKeys({ admin }: Target, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, (_, index) => `sk-bench-${index}-${crypto.randomUUID()}`);
  for (const key of keys) await admin?.createKey("bench", { key });
  return keys;
}
