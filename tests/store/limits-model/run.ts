import { hasLimit } from "../../../src/domain/limits.ts";
import type { KeyLimits } from "../../../src/domain/keys.ts";
import type { Store } from "../../../src/store/store.ts";
import { noLimits } from "../../../src/store/keys/rules.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { type Fleet, type Request, startFleet } from "./fleet.ts";
import type { InstanceOptions } from "./messages.ts";
import { findViolations, leastCharged, type Observed, viewsOf } from "./oracle.ts";

/** A killed instance is known to be dead after this; on a busy machine a live one must not seem so. */
export const deadAfterMs = 3000;
export const beatMs = 300;
/** As the handbook says; these instances take seconds. */
export const giveBackMs = 60_000;

const clients = 16;

/** Which limits each key has, in this order of ids from 1. Their numbers are random, and change. */
const kinds: readonly ((random: Random) => Partial<KeyLimits>)[] = [
  (random) => ({ max_concurrency: 1 + random.below(3) }),
  (random) => ({ requests_per_minute: 5 + random.below(60) }),
  (random) => ({ tokens_per_minute: 300 + random.below(2000) }),
  (random) => ({
    tokens_per_day: 300 + random.below(3000),
    tokens_per_week: 300 + random.below(3500),
    tokens_per_month: 300 + random.below(4000),
  }),
  (random) => ({
    max_concurrency: 2 + random.below(4),
    requests_per_minute: 20 + random.below(100),
    tokens_per_minute: 1000 + random.below(3000),
    tokens_per_day: 1000 + random.below(5000),
  }),
  // Of these, most is taken ahead.
  (random) => ({ requests_per_minute: 100 + random.below(500), tokens_per_minute: 2000 + random.below(20_000) }),
];
const teamKinds: typeof kinds = [
  (random) => ({ max_concurrency: 2 + random.below(3), tokens_per_minute: 500 + random.below(3000) }),
  (random) => ({ requests_per_minute: 40 + random.below(200), tokens_per_day: 600 + random.below(6000) }),
  () => ({}),
];
/** These are in a team, or in none; the last has no limits of its own. */
const keysInTeams = [4, 5, 6, kinds.length + 1];
/** Of some keys, whichever: the last has no limits of its own. */
const userKinds: typeof kinds = [
  (random) => ({ max_concurrency: 1 + random.below(3), tokens_per_day: 500 + random.below(3000) }),
  (random) => ({ requests_per_minute: 20 + random.below(200), tokens_per_minute: 500 + random.below(5000) }),
  () => ({}),
];
const keysWithUsers = new Set([2, 5, 6, kinds.length + 1]);
/** No team has these. */
const firstUser = 101;
export const keyCount = kinds.length + 1;

interface Drawn {
  limits: KeyLimits[];
  /** By key. */
  teams: Map<number, Request["team"]>;
  users: readonly (NonNullable<Request["user"]> & { team: Request["team"] })[];
}

function draw(random: Random): Drawn {
  const limitsOf = (kind: (typeof kinds)[number]): KeyLimits => ({ ...noLimits, ...kind(random) });
  const teams = teamKinds.map((kind, index) => ({ id: index + 1, limits: limitsOf(kind) }));
  return {
    limits: kinds.map(limitsOf),
    teams: new Map(keysInTeams.map((key) => [key, teams[random.below(teams.length + 1)]])),
    // The team of a user holds in place of the key's.
    users: userKinds.map((kind, index) => {
      const team = teams[random.below(2 * teams.length)];
      return { id: firstUser + index, limits: limitsOf(kind), team };
    }),
  };
}

/** Whole, left early, an error of the client's or the backend's, broken, timed out, never sent: only the first two count. */
const ends = ["whole", "whole", "whole", "left", "4xx", "5xx", "broken", "timed out", "never sent"] as const;

function nextRequest(random: Random, { limits, teams, users }: Drawn): Request {
  const picked = random.pick([1, 1, 2, 3, 4, 5, 6, 6, 6, 6, 7, 7]);
  const drawnUser = keysWithUsers.has(picked) ? users[random.below(users.length + 1)] : undefined;
  const subjects = [limits[picked - 1], drawnUser?.limits, (drawnUser?.team ?? teams.get(picked))?.limits];
  // One without any limit is not asked for.
  const [keyId, user] = subjects.some((one) => one !== undefined && hasLimit(one))
    ? [picked, drawnUser]
    : [6, undefined];
  const tokens = random.pick([0, 5, 20, 20, 90, 400]);
  const end = random.pick(ends);
  const most = random.pick([tokens, tokens, tokens / 2, tokens * 2]);
  const counts = { whole: Math.floor(most), left: Math.floor(most / 3) };
  return {
    keyId,
    limits: limits[keyId - 1] ?? noLimits,
    team: user?.team ?? teams.get(keyId),
    user,
    tokens,
    runMs: end === "timed out" ? 150 : random.below(30),
    generates: end === "whole" || end === "left" ? counts[end] : null,
    isLeft: end === "never sent",
  };
}

export interface ModelRun {
  seed: number;
  instances: number;
  /** By how much their clocks may be wrong. */
  maxSkewMs: number;
  /** How often something happens to an instance, or to the limits. */
  rounds: number;
  roundMs: number;
  database: Pick<InstanceOptions, "dataDir" | "databaseUrl">;
  /** The driver's own view of that database. */
  store: Store;
}

/** What limits do not promise to be exact beside: the machine was too busy for the database, or for its processes. */
const disturbances = ["Database unavailable", "Process disappeared"];

/** @returns what must not have happened; undefined if the machine was too busy to tell */
export async function runModel(run: ModelRun): Promise<string[] | undefined> {
  const { seed, instances, maxSkewMs, rounds, roundMs, database, store } = run;
  const random = createRandom(seed);
  const skews = Array.from({ length: instances }, () => random.below(2 * maxSkewMs + 1) - maxSkewMs);
  await using fleet = await startFleet({ ...database, beatMs, deadAfterMs }, skews);
  let drawn = draw(random);
  const over = new AbortController();
  const stopped = new Set<number>();
  let killed = 0;

  async function client(own: Random): Promise<void> {
    while (!over.signal.aborted) {
      const able = Array.from({ length: instances }, (_, index) => index).filter((index) => !stopped.has(index));
      await fleet.send(own.pick(able), nextRequest(own, drawn));
      await Bun.sleep(own.below(20));
    }
  }

  const faults = {
    async kill(index: number) {
      killed += 1;
      await fleet.kill(index);
      await fleet.replace(index);
    },
    async stop(index: number) {
      stopped.add(index);
      fleet.stop(index);
      await Bun.sleep(random.below(deadAfterMs / 3));
      fleet.wake(index);
      stopped.delete(index);
    },
    /** Of limits, and of the teams that keys are in, while requests run. */
    async change() {
      drawn = draw(random);
    },
  };

  const load = Array.from({ length: clients }, (_, n) => client(createRandom(seed * 1000 + n)));
  for (let round = 0; round < rounds; round++) {
    await Bun.sleep(roundMs);
    // One that is alone is not stopped, since its clients would only wait for it.
    const fault = random.pick(
      instances > 1 ? (["stop", "change", "stop", "change", "kill"] as const) : (["change", "kill"] as const),
    );
    await faults[round === 0 ? "kill" : fault](random.below(instances));
  }
  await Bun.sleep(roundMs);
  over.abort();
  await Promise.all(load);

  const [unavailable = 0, disappeared = 0] = disturbances.map(
    (text) => fleet.warnings.filter((warning) => warning.includes(text)).length,
  );
  // Each of the others may tell of one.
  if (unavailable > 0 || disappeared > killed * instances) return undefined;
  const violations = findViolations(fleet.observed, { giveBackMs, instances: fleet.started() });
  violations.push(...fleet.warnings.filter((text) => text.includes("not enforcing")));
  violations.push(...(await findLeaks(fleet, run, store)));
  return violations;
}

/** What still counts when nothing runs any more, and should not; or does not count, and should. */
async function findLeaks({ observed, started }: Fleet, { instances }: ModelRun, store: Store): Promise<string[]> {
  const ids = [
    ...Array.from({ length: keyCount }, (_, index) => index + 1),
    ...teamKinds.map((_, index) => -1 - index),
    ...userKinds.map((_, index) => -firstUser - index),
  ];
  const views = viewsOf(observed);
  const load = () => store.limits.listLoads(ids);
  const isFree = async (): Promise<boolean> =>
    (await load()).every(({ inFlight, reserved }) => inFlight === 0 && reserved === 0);
  const own = (keyId: number): Observed[] => views.filter((one) => one.keyId === keyId);
  const found: string[] = [];
  await pollUntil(isFree, giveBackMs).catch(() => found.push("places or tokens are not given back"));
  // What instances took ahead and did not use, they give back within a second, unless they were killed.
  const countsNoMore = async (): Promise<boolean> =>
    (await load()).every(
      ({ keyId, minuteRequests }) => minuteRequests <= mostRequests(own(keyId), started() - instances),
    );
  await pollUntil(countsNoMore, 5000).catch(() => found.push("requests count that nobody sent"));
  for (const { keyId, inFlight, reserved, minuteRequests, minuteTokens, dayTokens } of await load()) {
    if (found.length > 0)
      found.push(`key ${keyId}: ${inFlight} in flight, ${reserved} reserved, ${minuteRequests} requests`);
    const charged = leastCharged(own(keyId), Date.now());
    if (minuteTokens < charged)
      found.push(`key ${keyId}: ${minuteTokens} tokens of the minute, at least ${charged} used`);
    const isCounted = Map.groupBy(own(keyId), ({ endedAt, mayWait }) => endedAt < Infinity && !mayWait);
    const counted = generatedBy(isCounted.get(true));
    // A count may be committed whose end the driver did not hear of, or wait and be lost: the instance was killed then.
    const cut = generatedBy(isCounted.get(false));
    if (dayTokens < counted || dayTokens > counted + cut) {
      found.push(`key ${keyId}: ${dayTokens} tokens of the day, the backend generated ${counted} to ${counted + cut}`);
    }
  }
  return found;
}

const generatedBy = (requests: readonly Observed[] = []): number =>
  requests.reduce((sum, { generated }) => sum + (generated ?? 0), 0);

/** All that may count as requests of the last minute. */
function mostRequests(own: readonly Observed[], killed: number): number {
  const recent = own.filter(({ refusedBy, isLeft, sentAt, decidedAt, killedAt }) => {
    const latest = decidedAt < Infinity ? decidedAt : killedAt;
    const isGivenBack = isLeft && killedAt === Infinity;
    return refusedBy === undefined && !isGivenBack && Math.max(sentAt, latest) > Date.now() - 63_000;
  });
  const limit = Math.max(0, ...own.map(({ limits }) => limits.requests_per_minute ?? 0));
  return limit === 0
    ? Infinity
    : recent.length + killed * keysInTeams.length * (userKinds.length + 1) * Math.ceil(limit / 64);
}
