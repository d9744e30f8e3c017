import type { SimulatedRequest } from "../../support/simulator/request.ts";
import { type Simulator, startSimulator } from "../../support/simulator/simulator.ts";
import { logIn } from "../../support/admin-client.ts";
import { startProgram } from "../../support/program.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { childrenOf } from "../../support/proc.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { connectRaw } from "../../support/raw-client.ts";

/** Each key asks for a model of its own name, by which the backend knows its requests. */
const limits = {
  places: { max_concurrency: 2 },
  requests: { requests_per_minute: 15 },
  tokens: { tokens_per_day: 1500 },
} as const;
type Name = keyof typeof limits;
const names = ["places", "requests", "tokens"] as const;

const clients = 9;
const requestsPerRound = 60;
/** A process is killed so often in a long run: its requests hold their places until the others know that it is dead. */
const kills = 3;
const mostTokens = 40;
/** As the handbook says. */
const giveBackMs = 60_000;
/** Less what requests take to the backend. */
const minuteMs = 59_000;
/** How soon the backend hears of a client that left. */
const hearsMs = 250;

const ends = {
  whole: (tokens: number) => `usage=1,${tokens}; tokens=3; slow-head=10ms`,
  left: (tokens: number) => `usage=1,${tokens}; tokens=9; gap=5s@4`,
  "4xx": () => "status=400",
  "5xx": () => "status=503",
  broken: (tokens: number) => `usage=1,${tokens}; tokens=9; die@3`,
  "before the head": () => "reset-before-head",
} as const;

export interface HttpRun {
  seed: number;
  rounds: number;
  isKilled: boolean;
}

/** Two processes of the program. @returns what must not have happened */
export async function runOverHttp({ seed, rounds, isKilled }: HttpRun): Promise<string[]> {
  using backend = startSimulator({ recordRequests: 100_000 });
  const program = await startProgram({
    PROXY_UPSTREAM_URL: backend.url,
    ADMIN_PASSWORD: "password",
    LOG_LEVEL: "error",
    PROCESSES: "2",
    // A stream that its client leaves is counted to the token.
    PROXY_FORCE_STREAM_USAGE: "continuous",
  });
  const admin = await logIn(program.adminUrl, "admin", "password");
  const keys = Object.fromEntries(
    await Promise.all(
      names.map(async (name) => {
        const created = await admin.expectOk<{ key: string }>("POST", "/api/keys", { name, ...limits[name] });
        return [name, created.key];
      }),
    ),
  ) as Record<Name, string>;
  const found: string[] = [];
  const all = rounds * requestsPerRound;
  const killsAt = new Set(
    isKilled ? Array.from({ length: kills }, (_, n) => Math.floor(((n + 1) * all) / (kills + 1))) : [],
  );
  let left = all;
  async function client(random: Random): Promise<void> {
    while (left-- > 0) {
      if (killsAt.has(left)) process.kill(random.pick(childrenOf(program.pid)), "SIGKILL");
      const name = random.pick(names);
      const status = await sendOne(program.url, { name, key: keys[name] }, random);
      if (name === "places" && status === 429) found.push("a request was refused that could wait for a place");
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, n) => client(createRandom(seed * 100 + n))));
  await pollUntil(() => backend.stats().open === 0);
  for (const name of names) found.push(...(await judge(backend, name, killsAt.size)));
  const isFree = async (): Promise<boolean> => {
    const listed = await admin.expectOk<{ used: Record<string, number | null> }[]>("GET", "/api/keys");
    return listed.every(({ used }) => (used["max_concurrency"] ?? 0) === 0);
  };
  await pollUntil(isFree, giveBackMs).catch(() => found.push("places are not given back"));
  await program.stop();
  return found;
}

/** @returns undefined if the process was killed that it came to */
async function sendOne(
  url: string,
  { name, key }: { name: Name; key: string },
  random: Random,
): Promise<number | undefined> {
  const end = random.pick(["whole", "whole", "left", "4xx", "5xx", "broken", "before the head"] as const);
  const tokens = 1 + random.below(mostTokens);
  const messages = [{ role: "user", content: "Hello there" }];
  const client = await connectRaw(url, { deadlineMs: giveBackMs });
  const headers = { "x-api-key": key, "Content-Type": "application/json", "x-simulate": ends[end](tokens) };
  const body = { model: name, stream: true, max_tokens: tokens, messages };
  client.request("POST", "/v1/chat/completions", headers, JSON.stringify(body));
  const status = await client.head().then(
    (head) => head.status,
    () => undefined,
  );
  if (end === "left" && status === 200) {
    await client.nextEvent();
    client.reset();
    return status;
  }
  await client.ended();
  client.close();
  return status;
}

async function judge(backend: Simulator, name: Name, killed: number): Promise<string[]> {
  const own = backend.requests().filter((request) => modelOf(request) === name);
  const found: string[] = [];
  let leftTokens = 0;
  const spans = await Promise.all(
    own.map(async ({ receivedAt, ended, tokensSent }) => {
      const { at, how } = await ended;
      if (how === "aborted") leftTokens += 1 + tokensSent;
      return { from: receivedAt, to: how === "aborted" ? at - hearsMs : at };
    }),
  );
  const atOnce = Math.max(...spans.map(({ from }) => spans.filter((one) => one.from <= from && from < one.to).length));
  if (name === "places" && atOnce > limits.places.max_concurrency) found.push(`${atOnce} in flight at the backend`);
  const perMinute = limits.requests.requests_per_minute;
  const mostInMinute = Math.max(
    ...spans.map(({ from }) => spans.filter((one) => one.from >= from && one.from < from + minuteMs).length),
  );
  // Far more than these were sent. Some may have been admitted by a process that was killed before it sent them.
  const fewest = killed === 0 ? perMinute : 1;
  if (name === "requests" && (mostInMinute > perMinute || mostInMinute < fewest))
    found.push(`${mostInMinute} requests, ${perMinute} allowed`);
  const { inputTokens = 0, outputTokens = 0 } = backend.stats().reportedByModel[name] ?? {};
  const perDay = limits.tokens.tokens_per_day;
  const generated = inputTokens + outputTokens + leftTokens;
  // What a killed process had not counted yet, of one request of each client.
  const uncounted = killed * clients * (1 + mostTokens);
  if (name === "tokens" && generated > perDay + uncounted) found.push(`${generated} tokens, ${perDay} allowed`);
  return found;
}

function modelOf(request: SimulatedRequest): string | undefined {
  const body = request.json();
  return typeof body === "object" && body !== null && "model" in body ? String(body.model) : undefined;
}
