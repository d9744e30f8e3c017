// What limits are compared with, what a process takes of what they leave, and what responses are charged.

import { and, type AnyColumn, asc, eq, gt, lt, ne, type SQL, sql } from "drizzle-orm";
import { dayNumberOf, type Days, daysOfWindow, minuteWindowSeconds, type Window, windows } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { hasLimit, limitKinds, type LimitName, limitNames, requestLimits } from "../../domain/limits.ts";
import {
  type Bound,
  type Counted,
  findExceeded,
  leaseLimits,
  judge,
  type KeyLoad,
  noLoad,
  tokensAhead,
} from "./judge.ts";
import type { Lease, LeaseBatch, LeaseRequest, LimitStore } from "./contract.ts";
import type { SettledAdmission } from "../../domain/admissions.ts";
import type { KeyLimits, SubjectId } from "../../domain/keys.ts";
import { chargedTokens, subjectsOf, type UsageIncrement } from "../../domain/usage.ts";

/** The statement that sums what a limit is compared with. */
type Source = "leases" | Exclude<Window, "now">;

const sourceOf = (window: Window): Source => (window === "now" ? "leases" : window);

/** Leases come first: if it is counted meanwhile, it is seen twice, and not missed. */
export const allSources = windows.map(sourceOf);

const limitsIn = (window: Window): LimitName[] => limitNames.filter((name) => limitKinds[name].window === window);

/** The limits that are compared with its sums. */
const limitsOf: Readonly<Record<Source, readonly LimitName[]>> = {
  leases: leaseLimits,
  minute: limitsIn("minute"),
  day: limitsIn("day"),
  week: limitsIn("week"),
  month: limitsIn("month"),
};

/** Those that limits need. */
export function sourcesOf(limits: KeyLimits): Source[] {
  const needed: Source[] = [];
  for (const source of allSources) if (hasLimit(limits, limitsOf[source])) needed.push(source);
  return needed;
}

/** What a source has of a load. */
type PartOf<From extends Source> = From extends "leases"
  ? "inFlight" | "reserved"
  : Extract<Counted, `${From}${string}`>;

/** @param instance whose own part is left out. @returns the sums of some sources; the rest is 0 */
type ReadLoads = (
  keyIds: readonly SubjectId[],
  from: readonly Source[],
  at: { now: number; instance?: string },
) => Promise<Map<SubjectId, KeyLoad>>;

const given = (name: string): ReturnType<typeof sql.placeholder> => sql.placeholder(name);
const sum = (expression: AnyColumn | SQL): SQL => sql`sum(${expression})`;

export function prepareLoads(engine: Engine): ReadLoads {
  const { tables, prepareKeySums } = engine;
  const { keyLeases, leaseSeconds, usageDay } = tables;
  const dayTokens = sum(sql`${usageDay.inputTokens} + ${usageDay.outputTokens} + ${usageDay.besideTokens}`);
  const read = {
    leases: prepareKeySums({
      table: keyLeases,
      sums: { inFlight: sum(keyLeases.places), reserved: sum(keyLeases.tokens) },
      where: ne(keyLeases.instance, given("instance")),
    }),
    minute: prepareKeySums({
      table: leaseSeconds,
      sums: { minuteRequests: sum(leaseSeconds.requests), minuteTokens: sum(leaseSeconds.tokens) },
      where: inLastMinute(leaseSeconds.second),
    }),
    day: prepareKeySums({ table: usageDay, sums: { dayTokens }, where: eq(usageDay.day, given("day")) }),
    week: prepareKeySums({ table: usageDay, sums: { weekTokens: dayTokens }, where: isGivenDay(engine, "week") }),
    month: prepareKeySums({ table: usageDay, sums: { monthTokens: dayTokens }, where: isGivenDay(engine, "month") }),
  } satisfies { [From in Source]: (...given: never[]) => Promise<Map<SubjectId, Record<PartOf<From>, number>>> };

  return async (keyIds, from, { now, instance = "" }) => {
    const loads = new Map<SubjectId, KeyLoad>();
    for (const keyId of keyIds) loads.set(keyId, { ...noLoad });
    const values: Record<string, unknown> = { instance, ...minuteBounds(now), day: dayNumberOf(now) };
    for (const source of from) {
      if (source === "week" || source === "month") values[source] = daysJson(daysOfWindow(source, now));
      for (const [keyId, part] of await read[source](keyIds, values)) Object.assign(loads.get(keyId) ?? {}, part);
    }
    return loads;
  };
}

/** Ignores the future: a clock that was set back must not lock a key out. */
const inLastMinute = (second: AnyColumn): SQL | undefined =>
  and(gt(second, given("after")), lt(second, given("before")));

function minuteBounds(now: number): { after: number; before: number } {
  const second = Math.floor(now / 1000);
  return { after: second - minuteWindowSeconds, before: second + minuteWindowSeconds };
}

/** A list: with a range of days, SQLite would read the rows of all keys. */
export const isGivenDay = ({ anyByIndex, jsonRows, tables }: Engine, name: string): SQL =>
  anyByIndex(tables.usageDay.day, sql`select cast(value->>0 as bigint) from ${jsonRows(given(name))}`);

export const daysJson = ({ from, to }: Days): string =>
  JSON.stringify(Array.from({ length: to - from }, (_, index) => [from + index]));

const key = ["keyId", "second", "writer"];
const added = ["requests", "tokens"];

/** Adds to what keys used in each second. @param second counts all in that one; on PostgreSQL only */
const prepareAddSeconds = ({ prepareInsert, tables }: Engine, second?: SQL) =>
  prepareInsert(tables.leaseSeconds, [...key, ...added], { key, added }, second && { second });

interface UsedTokens {
  keyId: SubjectId;
  writer: string;
  tokens: number;
  /** By our clock, epoch milliseconds. */
  at: number;
}

/** Counts tokens in the second in which they were used. @param agoSeconds before now, by the database's clock if it has one */
export function prepareAddTokens(engine: Engine, agoSeconds = 0): (used: readonly UsedTokens[]) => Statement[] {
  const { currentSecond } = engine;
  const add = prepareAddSeconds(engine, currentSecond && sql`${currentSecond} - ${sql.raw(String(agoSeconds))}`);
  return (used) => {
    const rows: (string | number)[][] = [];
    for (const { keyId, writer, tokens, at } of used) {
      const second = currentSecond === undefined ? Math.floor(at / 1000) - agoSeconds : 0;
      rows.push([keyId, second, writer, 0, tokens]);
    }
    return rows.length === 0 ? [] : [add(rows)];
  };
}

/** What a flush does for keys with limits of tokens. It writes nothing that is held, and no row that an admission waits for. */
export function prepareSettling(
  engine: Engine,
): (settled: readonly SettledAdmission[], increments: readonly UsageIncrement[]) => Statement[] {
  const addTokens = prepareAddTokens(engine);
  return (settled, increments) => {
    if (settled.length === 0) return [];
    const writers = new Map<SubjectId, string>();
    for (const { subjects, instance } of settled) for (const id of subjects) writers.set(id, `${instance} counts`);
    const used: UsedTokens[] = [];
    for (const increment of increments) {
      for (const keyId of subjectsOf(increment)) {
        const writer = writers.get(keyId);
        // What an earlier estimate gives back was charged to a second that may be over.
        const tokens = Math.max(0, chargedTokens(increment));
        if (writer !== undefined) used.push({ keyId, writer, tokens, at: increment.lastClosedAt });
      }
    }
    return addTokens(used);
  };
}

/** How many times all that is taken ahead has to fit, so that it hardly takes anything from other requests. */
const timesAhead = 64;

/** PostgreSQL takes leases in a function of its own, which does the same in one call. */
export function prepareTake(engine: Engine, clock: WallClock): LimitStore["take"] {
  const { transaction, callFunction, currentSecond } = engine;
  if (callFunction !== undefined) {
    return async (batch) => {
      const argument = argumentOf(batch, currentSecond === undefined ? clock() : null);
      return (await callFunction("tollgate_take_leases", argument)) as Lease[];
    };
  }
  const takeOne = prepareTakeOne(engine);
  return (batch) =>
    transaction(async () => {
      const now = clock();
      const granted = new Map<SubjectId, Held>();
      const leases: Lease[] = [];
      for (const request of batch.requests) leases.push(await takeOne(request, batch, { now, granted }));
      return leases;
    });
}

/** Within a transaction that has the write lock. */
function prepareTakeOne(engine: Engine) {
  const { prepareInsert, tables } = engine;
  const loadsOf = prepareLoads(engine);
  const listSeconds = prepareSeconds(engine);
  const addSeconds = prepareAddSeconds(engine);
  const write = prepareWrite(engine);
  const addRefusals = prepareInsert(tables.keyRefusals, ["day", "keyId", "requests"], {
    key: ["day", "keyId"],
    added: ["requests"],
  });

  return async (
    { subjects, requests, ahead: wanted }: LeaseRequest,
    { instance, version }: LeaseBatch,
    { now, granted }: { now: number; granted: Map<SubjectId, Held> },
  ): Promise<Lease> => {
    const held: (Pick<LeaseRequest["subjects"][number], "id" | "refused"> & Held & Bound)[] = [];
    for (const { id, limits, corrections, refused, ...own } of subjects) {
      if (corrections.length > 0)
        await addSeconds(corrections.map((one) => [id, one.second, instance, one.requests, 0]))();
      const load = (await loadsOf([id], sourcesOf(limits), { now, instance })).get(id) ?? { ...noLoad };
      const { places, tokens } = granted.get(id) ?? own;
      load.inFlight += places;
      load.reserved += tokens;
      held.push({ id, refused, limits, load, places, tokens });
    }
    const after = judge(held, requests).at(-1)?.bounds ?? held;
    const [before, last] = [held[0]?.load, after[0]?.load];
    const admitted = (last?.inFlight ?? 0) - (before?.inFlight ?? 0);
    const aheadTokens = tokensAhead(requests);
    let ahead = wanted;
    // So many that they take little of what is left.
    while (ahead > 0 && findExceeded(after, aheadTokens, timesAhead * ahead) !== undefined)
      ahead = Math.floor(ahead / 2);
    const taken = (last?.reserved ?? 0) - (before?.reserved ?? 0) + ahead * aheadTokens;
    const leased: Lease["subjects"][number][] = [];
    for (const { id, refused, limits, load, places, tokens } of held) {
      const isRefused = admitted < requests.length;
      const seconds = isRefused ? await listSeconds.execute({ keyId: id, ...minuteBounds(now) }) : undefined;
      if (refused > 0) await addRefusals([[dayNumberOf(now), id, refused]])();
      if (writesLease({ limits, requests })) {
        const all = { places: places + admitted, tokens: tokens + taken };
        granted.set(id, all);
        await write.execute({ keyId: id, instance, version, ...all });
      }
      const counted = admitted + ahead;
      if (counted > 0 && hasLimit(limits, requestLimits))
        await addSeconds([[id, Math.floor(now / 1000), instance, counted, 0]])();
      leased.push({ load, places, tokens, seconds });
    }
    return { subjects: leased, now, ahead };
  };
}

/** What the process holds of a subject. */
type Held = Pick<LeaseRequest["subjects"][number], "places" | "tokens">;

/** Without new requests it gives back, perhaps what was held while the key had other limits. */
const writesLease = ({ limits, requests }: Pick<LeaseRequest, "requests"> & Pick<Bound, "limits">): boolean =>
  requests.length === 0 || hasLimit(limits, leaseLimits);

function prepareWrite({ db, tables: { keyLeases } }: Engine) {
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
      setWhere: sql`${keyLeases.version} <= excluded.version`,
    })
    .prepare();
}

/** The seconds of the last minute, oldest first. */
function prepareSeconds({ db, tables: { leaseSeconds } }: Engine) {
  const { keyId, second, requests, tokens } = leaseSeconds;
  return db
    .select({ second, requests: sum(requests).mapWith(Number), tokens: sum(tokens).mapWith(Number) })
    .from(leaseSeconds)
    .where(and(eq(keyId, given("keyId")), inLastMinute(second)))
    .groupBy(second)
    .orderBy(asc(second))
    .prepare();
}

/** As `tollgate_take_leases` reads it. @param now null: by the database's clock */
const argumentOf = ({ instance, version, requests: asks }: LeaseBatch, now: number | null): object => ({
  instance,
  version,
  now,
  requests: asks.map(({ subjects, requests, ahead }) => ({
    requests: requests.map(({ tokens }) => tokens),
    least: requests.map(({ leastTokens = null }) => leastTokens),
    ahead,
    aheadTokens: tokensAhead(requests),
    subjects: subjects.map(({ limits, ...subject }) => ({
      ...subject,
      holds: writesLease({ limits, requests }),
      asks: hasLimit(limits, requestLimits),
      limits: limitNames.flatMap((name) => {
        const { counts, window } = limitKinds[name];
        return limits[name] === null ? [] : [[`${counts} ${window}`, limits[name]]];
      }),
    })),
  })),
});
