import { sql } from "drizzle-orm";
import { dayNumberOf } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import type { Engine } from "../engine/engine.ts";
import { hasLimit, limitKinds, limitNames, requestLimits } from "../../domain/limits.ts";
import { prepareLoads } from "./key-loads.ts";
import { prepareAddSeconds } from "./settling.ts";
import { findExceeded, holdsPlace, judge, type KeyLoad } from "./windows.ts";
import type { Lease, LeaseBatch, LeaseRequest, LimitStore } from "./contract.ts";
import type { KeyLimits } from "../../domain/keys.ts";

/** How many times all that is taken ahead has to fit, so that it hardly takes anything from other requests. */
const timesAhead = 64;

/** PostgreSQL takes leases in a function of its own, which does the same in one call. */
export function prepareTake(engine: Engine, clock: WallClock): LimitStore["take"] {
  const { transaction, callFunction, currentSecond } = engine;
  if (callFunction !== undefined) {
    return async (batch) => {
      const argument = argumentOf(batch, currentSecond === undefined ? clock() : null);
      return ((await callFunction("tollgate_take_leases", argument)) as TakenLease[]).map(leaseOf);
    };
  }
  const takeOne = prepareTakeOne(engine);
  return (batch) =>
    transaction(async () => {
      const now = clock();
      const leases: Lease[] = [];
      for (const request of batch.requests) leases.push(await takeOne(request, batch, now));
      return leases;
    });
}

/** Within a transaction that has the write lock. */
function prepareTakeOne(engine: Engine) {
  const { prepareInsert, tables } = engine;
  const loads = prepareLoads(engine);
  const addSeconds = prepareAddSeconds(engine);
  const write = prepareWrite(engine);
  const addRefusals = prepareInsert(tables.keyRefusals, ["day", "keyId", "requests"], {
    key: ["day", "keyId"],
    added: ["requests"],
  });

  return async (request: LeaseRequest, { instance, version }: LeaseBatch, now: number): Promise<Lease> => {
    const { keyId, limits, places, tokens, requests, corrections } = request;
    if (corrections.length > 0)
      await addSeconds(corrections.map((one) => [keyId, one.second, instance, one.requests, 0]))();
    const load = await loads.ofOthers(request, { instance, now });
    load.inFlight += places;
    load.reserved += tokens;
    const judged = judge(load, request);
    const after = judged.at(-1)?.load ?? load;
    const admitted = after.inFlight - load.inFlight;
    const aheadTokens = Math.max(0, ...requests);
    const ahead = aheadOf(request.ahead, { load: after, limits, tokens: aheadTokens });
    const seconds = admitted < requests.length ? await loads.seconds(keyId, now) : undefined;
    if (request.refused > 0) await addRefusals([[dayNumberOf(now), keyId, request.refused]])();
    if (holdsPlace(limits)) {
      const held = after.reserved - load.reserved + ahead * aheadTokens;
      await write.execute({ keyId, instance, version, places: places + admitted, tokens: tokens + held });
    }
    const counted = admitted + ahead;
    if (counted > 0 && hasLimit(limits, requestLimits))
      await addSeconds([[keyId, Math.floor(now / 1000), instance, counted, 0]])();
    return { load, now, ahead, seconds };
  };
}

/** So many that they take little of what is left. */
function aheadOf(
  wanted: number,
  { load, limits, tokens }: { load: KeyLoad; limits: KeyLimits; tokens: number },
): number {
  let count = wanted;
  while (count > 0 && findExceeded(load, limits, tokens, timesAhead * count) !== undefined) {
    count = Math.floor(count / 2);
  }
  return count;
}

// oxlint-disable-next-line typescript/explicit-function-return-type -- Drizzle's type of a prepared statement
function prepareWrite({ db, tables: { keyLeases } }: Engine) {
  const given = (name: string) => sql.placeholder(name);
  return db
    .insert(keyLeases)
    .values({
      keyId: given("keyId"),
      instance: given("instance"),
      version: given("version"),
      places: given("places"),
      tokens: given("tokens"),
    })
    .onConflictDoUpdate({
      target: [keyLeases.keyId, keyLeases.instance],
      set: { version: sql`excluded.version`, places: sql`excluded.places`, tokens: sql`excluded.tokens` },
      setWhere: sql`${keyLeases.version} < excluded.version`,
    })
    .prepare();
}

/** As `tollgate_take_leases` reads it. @param now null: by the database's clock */
const argumentOf = ({ instance, version, requests }: LeaseBatch, now: number | null): object => ({
  instance,
  version,
  now,
  requests: requests.map(({ limits, ...request }) => ({
    ...request,
    aheadTokens: Math.max(0, ...request.requests),
    holds: holdsPlace(limits),
    limits: limitNames.flatMap((name) => {
      const { counts, window } = limitKinds[name];
      return limits[name] === null ? [] : [[`${counts} ${window}`, limits[name]]];
    }),
  })),
});

/** What it returns for one request. */
interface TakenLease extends Omit<Lease, "seconds"> {
  seconds: [second: number, requests: number, tokens: number][] | null;
}

const leaseOf = ({ now, ahead, load, seconds }: TakenLease): Lease => ({
  now,
  ahead,
  load,
  seconds: seconds?.map(([second, requests, tokens]) => ({ second, requests, tokens })),
});
