import { startSimulator } from "../support/simulator/simulator.ts";
import { logIn } from "../support/admin-client.ts";
import { startPostgres } from "../support/postgres.ts";
import { type Program, startProgram } from "../support/program.ts";

// Small completions at 32 connections for each instance: CPU time and throughput for a key without limits, for one with
// limits of requests per minute, tokens per minute and tokens per day, and the same for 200 keys, without limits and in a team
// that has them.
// `bun tests/bench/limits.ts [ROUNDS] [INSTANCES] [streams]`: with a number of instances, on one PostgreSQL, else, or with 0,
// on SQLite. With `streams`, 100 streams at a time of 64 frames, 25 a second.
// TOLLGATE_BINARY measures another build.

const isOfStreams = process.argv[4] === "streams";
const connections = isOfStreams ? 100 : 32;
const requestsPerRound = isOfStreams ? 200 : 6000;
const rounds = Number(process.argv[2] ?? 5);
const instances = Number(process.argv[3] ?? 0);
const high = { requests_per_minute: 1e9, tokens_per_minute: 1e12, tokens_per_day: 1e12 };
const headers = { "content-type": "application/json" };
const body = JSON.stringify({
  model: "m",
  messages: [{ role: "user", content: "Hi" }],
  ...(isOfStreams ? { max_tokens: 64, stream: true } : { max_tokens: 5 }),
});

async function complete(urls: readonly string[], keys: readonly string[]): Promise<void> {
  let left = requestsPerRound;
  const client = async (url: string): Promise<void> => {
    while (left-- > 0) {
      const response = await fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { ...headers, "x-api-key": keys[left % keys.length] ?? "" },
        body,
      });
      await response.arrayBuffer();
      if (response.status !== 200) throw new Error(`Status ${response.status}`);
    }
  };
  await Promise.all(urls.flatMap((url) => Array.from({ length: connections }, () => client(url))));
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

using backend = startSimulator({ recordRequests: 0, framesPerSecond: isOfStreams ? 25 : 0 });
await using postgres = instances === 0 ? undefined : await startPostgres();
const environment = {
  PROXY_UPSTREAM_URL: backend.url,
  ADMIN_PASSWORD: "password",
  LOG_LEVEL: "warn",
  ...(postgres !== undefined && { DATABASE_URL: await postgres.createDatabase(), SECRET_KEY: "0123456789abcdef" }),
};
const programs: Program[] = [];
for (let started = 0; started < Math.max(1, instances); started++) programs.push(await startProgram(environment));
const urls = programs.map(({ url }) => url);
const admin = await logIn(programs[0]?.adminUrl ?? "", "admin", "password");
const create = async (name: string, fields: object): Promise<string> => (await admin.createKey(name, fields)).key;
const { id: teamId } = await admin.expectOk<{ id: number }>("POST", "/api/teams", { name: "team", ...high });
const many: string[] = [];
const team: string[] = [];
for (let index = 0; index < 200; index++) {
  many.push(await create(`many ${index}`, {}));
  team.push(await create(`of team ${index}`, { team_id: teamId }));
}
const keys = { unlimited: [await create("unlimited", {})], limited: [await create("limited", high)], many, team };
const names = ["unlimited", "limited", "many", "team"] as const;
const cpuMs = (): number => programs.reduce((sum, program) => sum + program.cpuMs(), 0);
const none = (): Record<"us" | "perSecond", number[]> => ({ us: [], perSecond: [] });
const seen = { unlimited: none(), limited: none(), many: none(), team: none() };
for (let round = 0; round <= rounds; round++) {
  // In turn the other one first: what the rounds before have written makes the next one slower.
  for (const name of round % 2 === 0 ? names : names.toReversed()) {
    const [cpuBefore, begunAt] = [cpuMs(), performance.now()];
    await complete(urls, keys[name]);
    const tookMs = performance.now() - begunAt;
    await Bun.sleep(200);
    // The first round warms up.
    if (round === 0) continue;
    seen[name].us.push(((cpuMs() - cpuBefore) * 1000) / requestsPerRound);
    seen[name].perSecond.push((requestsPerRound * 1000) / tookMs);
  }
}
for (const program of programs) await program.stop();
for (const [name, { us, perSecond }] of Object.entries(seen)) {
  const shown = us.map((value) => value.toFixed(1)).join(" ");
  process.stdout.write(
    `${name}: ${median(us).toFixed(1)} µs of CPU for each (${shown}), ${median(perSecond).toFixed(0)} a second\n`,
  );
}
/** Of the two values of each round, which had the same weather. */
const paired = (
  [name, other]: readonly [keyof typeof seen, keyof typeof seen],
  of: (value: number, than: number) => number,
  by: "us" | "perSecond",
): number => median(seen[name][by].map((value, round) => of(value, seen[other][by][round] ?? NaN)));
for (const pair of [
  ["limited", "unlimited"],
  ["team", "many"],
  ["team", "limited"],
] as const) {
  const more = paired(pair, (value, than) => value - than, "us");
  const ratio = paired(pair, (value, than) => value / than, "perSecond");
  process.stdout.write(
    `${pair.join(" : ")}, by pairs of rounds: ${more.toFixed(1)} µs of CPU more, ${ratio.toFixed(2)} of the throughput\n`,
  );
}
