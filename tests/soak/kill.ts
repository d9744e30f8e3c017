import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startProgram } from "../support/program.ts";
import { createRandom } from "../support/random.ts";
import { add, differences, readCounters, type Tally } from "./tally.ts";
import { sendRequests, type Traffic } from "./traffic.ts";

export interface KillOptions {
  /** Of the program that has stopped, without the backend's address. */
  environment: Readonly<Record<string, string>>;
  password: string;
  keys: Traffic["keys"];
  clients: number;
  seed: number;
}

const rounds = 3;
const roundMs = 4000;

/**
 * Starts the program again on its data, and kills it in the middle of traffic, a few times. Its sums must agree afterwards,
 * and contain every response whose end a client has seen.
 */
export async function killProblems({ environment, password, keys, clients, seed }: KillOptions): Promise<string[]> {
  using backend = startSimulator({ recordRequests: 0 });
  const start = () => startProgram({ ...environment, PROXY_UPSTREAM_URL: backend.url });
  const finished: Tally = new Map();
  const problems: string[] = [];
  let before: Tally | undefined;
  for (let round = 0; round < rounds; round++) {
    const program = await start();
    before ??= (await readCounters(await logIn(program.adminUrl, "admin", password))).keys;
    const random = createRandom(seed + round);
    const traffic: Traffic = { url: program.url, keys, random, seen: new Map(), finished, kinds: new Map() };
    let isKilled = false;
    const load = Array.from({ length: clients }, () =>
      sendRequests(traffic, () => isKilled).catch((error: unknown) => {
        if (!isKilled) problems.push(`Before a kill: ${String(error)}`);
      }),
    );
    await Bun.sleep(roundMs);
    isKilled = true;
    await program.stop("SIGKILL");
    await Promise.all(load);
  }
  const program = await start();
  const { keys: counted, ...others } = await readCounters(await logIn(program.adminUrl, "admin", password));
  await program.stop();
  for (const [name, tally] of Object.entries(others)) {
    problems.push(...differences(counted, tally).map((line) => `After kill -9, keys vs. ${name}: ${line}`));
  }
  return [...problems, ...missing(before ?? new Map(), finished, counted)];
}

/** What clients have seen the end of, and the program has not counted. */
function missing(before: Tally, finished: Tally, after: Tally): string[] {
  const expected: Tally = new Map(before);
  for (const [name, sum] of finished) add(expected, name, sum);
  return [...expected].flatMap(([name, sum]) => {
    const counted = after.get(name);
    const isMissing =
      counted === undefined ||
      counted.requests < sum.requests ||
      counted.inputTokens < sum.inputTokens ||
      counted.outputTokens < sum.outputTokens;
    return isMissing ? [`After kill -9, ${name}: ${JSON.stringify(counted)} of ${JSON.stringify(sum)}`] : [];
  });
}
