import { join } from "node:path";
import { type Contestant, here } from "./contestants.ts";
import type { LoadResult, LoadSpec } from "./load/spec.ts";
import type { Measure, Run } from "./measures.ts";
import { cpuUs, loadCore, residentMb } from "./processes.ts";

const limitMs = 30_000;
const warmUpMs = 8000;
/** What a process still does after its last answer belongs to it. */
const settleMs = 200;

/** A run whose counters do not agree with what the client saw, or whose answers are not those that were meant. */
export class WrongCount extends Error {
  override name = "WrongCount";
}

/** @throws WrongCount */
export async function measureOnce(measure: Measure, contestant: Contestant, keys: readonly string[]): Promise<Run> {
  const countedBefore = await countedBy(contestant);
  const asking = measure.console === true ? askConsole(contestant) : undefined;
  const cpuBefore = cpuUs(contestant.process.pid);
  const result = await load(measure, contestant, keys);
  const memory = residentMb(contestant.process.pid);
  await asking?.stop();
  await Bun.sleep(settleMs);
  const run = { result, cpuUs: cpuUs(contestant.process.pid) - cpuBefore, residentMb: memory };
  checkAnswers(measure, contestant, result);
  await checkCounters(contestant, countedBefore, result);
  return run;
}

/** A gateway runs for weeks: what its runtime does in the first seconds is no part of its figures. */
export async function warmUp(measure: Measure, contestant: Contestant, key: string): Promise<void> {
  await load({ ...measure, load: { ...measure.load, requests: 1_000_000, limitMs: warmUpMs } }, contestant, [key]);
}

/** The load generator runs in a process of its own for each run, so that none inherits another's garbage. */
async function load(measure: Measure, contestant: Contestant, keys: readonly string[]): Promise<LoadResult> {
  const spec: LoadSpec = {
    port: contestant.port,
    path: "/v1/chat/completions",
    keys,
    body: "",
    connections: 1,
    requests: 1,
    perSecond: 0,
    stallMs: 0,
    limitMs,
    ...measure.load,
    headers: [...contestant.headers, ...(measure.load.headers ?? [])],
  };
  const child = Bun.spawn(["taskset", "-c", String(loadCore), process.execPath, join(here, "load/main.ts")], {
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

function checkAnswers(
  { name, load: { requests }, status = 200 }: Measure,
  contestant: Contestant,
  result: LoadResult,
): void {
  if (result.statuses[status] === requests) return;
  throw new WrongCount(
    `${name}, ${contestant.name}: ${requests} answers with ${status} were due: ${JSON.stringify(result)}`,
  );
}

interface Counted {
  requests: number;
  inputTokens: number;
  outputTokens: number;
}

/** The sums over all keys, as the admin API tells them; undefined where nothing counts. */
async function countedBy({ admin }: Contestant): Promise<Counted | undefined> {
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

async function checkCounters(
  contestant: Contestant,
  before: Counted | undefined,
  { usage }: LoadResult,
): Promise<void> {
  const after = await countedBy(contestant);
  if (before === undefined || after === undefined) return;
  const counted = {
    requests: after.requests - before.requests,
    inputTokens: after.inputTokens - before.inputTokens,
    outputTokens: after.outputTokens - before.outputTokens,
  };
  if (Bun.deepEquals(counted, usage)) return;
  throw new WrongCount(`${contestant.name} counted ${JSON.stringify(counted)}, the client ${JSON.stringify(usage)}`);
}

const heavyQuestions = [
  "/api/usage/history?days=30&bucket_minutes=1",
  "/api/usage/daily?days=365",
  "/api/gpu-stats/power-history?days=30&bucket_minutes=1",
  "/api/keys",
];

function askConsole({ admin }: Contestant): { stop(): Promise<void> } {
  const stopped = new AbortController();
  const done = (async () => {
    while (!stopped.signal.aborted) {
      for (const question of heavyQuestions) await (await admin?.request("GET", question))?.bytes();
    }
  })();
  return {
    stop() {
      stopped.abort();
      return done;
    },
  };
}

/** Makes as many keys as a measure wants. */
export async function createKeys({ admin }: Contestant, count: number): Promise<string[]> {
  const keys = Array.from({ length: count }, (_, index) => `sk-bench-${index}-${crypto.randomUUID()}`);
  for (const key of keys) await admin?.createKey("bench", key);
  return keys;
}
