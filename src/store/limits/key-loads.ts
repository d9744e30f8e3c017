import { and, type AnyColumn, asc, eq, gt, inArray, lt, ne, type SQL, sql } from "drizzle-orm";
import { dayNumberOf, monthOf } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { minuteWindowSeconds, type Window, windows } from "../../time/windows.ts";
import { type Counted, holdsPlace, type KeyLoad, type KeySecond, noLoad } from "./windows.ts";
import type { EstimatedTokens, LimitStore } from "./contract.ts";
import type { KeyId, KeyLimits } from "../../domain/keys.ts";
import { limitKinds, limitNames } from "../../domain/limits.ts";

export interface Loads {
  /** Without what an instance holds itself. Reads only what the limits need; the rest is 0. */
  ofOthers(of: { keyId: KeyId; limits: KeyLimits }, to: { instance: string; now: number }): Promise<KeyLoad>;
  ofKeys(keyIds: readonly KeyId[], now: number): Promise<(keyId: KeyId) => KeyLoad>;
  /** Of the tokens of the day and of the month, those that were charged by an estimate. */
  estimatesOf(keyIds: readonly KeyId[], now: number): Promise<(keyId: KeyId) => EstimatedTokens>;
  listDays: LimitStore["listDays"];
  /** The seconds of the last minute, oldest first. */
  seconds(keyId: KeyId, now: number): Promise<KeySecond[]>;
}

/** The statement whose result a limit is compared with. */
type Source = "held" | Exclude<Window, "now">;

/** What is held comes first: if it is counted meanwhile, it is seen twice, and not missed. */
const sources = windows.map((window) => (window === "now" ? "held" : window));

/** Whether limits need what a source has. */
function needs(limits: KeyLimits, source: Source): boolean {
  if (source === "held") return holdsPlace(limits);
  for (const name of limitNames) if (limits[name] !== null && limitKinds[name].window === source) return true;
  return false;
}

export function prepareLoads(engine: Engine): Loads {
  const read = prepareReads(engine);
  return {
    async ofOthers({ keyId, limits }, { instance, now }) {
      const load = { ...noLoad };
      for (const source of sources) {
        if (!needs(limits, source)) continue;
        const parts = source === "held" ? await read.heldByOthers([keyId], instance) : await read[source]([keyId], now);
        Object.assign(load, parts.get(keyId));
      }
      return load;
    },
    async ofKeys(keyIds, now) {
      const loads = new Map(keyIds.map((keyId) => [keyId, { ...noLoad }]));
      for (const source of sources) {
        for (const [keyId, part] of await read[source](keyIds, now)) Object.assign(loads.get(keyId) ?? {}, part);
      }
      return (keyId) => loads.get(keyId) ?? { ...noLoad };
    },
    estimatesOf: read.estimatesOf,
    seconds: read.seconds,
    listDays: read.listDays,
  };
}

/** What a source has of a load. */
type PartOf<From extends Source> = Pick<
  KeyLoad,
  From extends "held" ? "inFlight" | "reserved" : Extract<Counted, `${From}${string}`>
>;
type Reads = {
  [From in Source]: (keyIds: readonly KeyId[], now: number) => Promise<Map<KeyId, PartOf<From>>>;
} & { heldByOthers: (keyIds: readonly KeyId[], instance: string) => Promise<Map<KeyId, PartOf<"held">>> };

function prepareReads(engine: Engine): Reads & Pick<Loads, "estimatesOf" | "seconds" | "listDays"> {
  const { db, tables, jsonRows, prepareKeySums } = engine;
  const { keyLeases, leaseSeconds, usageDay } = tables;
  const sum = (expression: AnyColumn | SQL): SQL => sql`sum(${expression})`;
  const [after, before] = [sql.placeholder("after"), sql.placeholder("before")];
  // Ignores the future: a clock that was set back must not lock a key out.
  const inWindow = and(gt(leaseSeconds.second, after), lt(leaseSeconds.second, before));
  const windowOf = (now: number) => {
    const second = Math.floor(now / 1000);
    return { after: second - minuteWindowSeconds, before: second + minuteWindowSeconds };
  };
  const dayTokens = sum(sql`${usageDay.inputTokens} + ${usageDay.outputTokens} + ${usageDay.besideTokens}`);

  const holding = { table: keyLeases, sums: { inFlight: sum(keyLeases.places), reserved: sum(keyLeases.tokens) } };
  const held = prepareKeySums(holding);
  const heldByOthers = prepareKeySums({ ...holding, where: ne(keyLeases.instance, sql.placeholder("instance")) });
  const minute = prepareKeySums({
    table: leaseSeconds,
    sums: { minuteRequests: sum(leaseSeconds.requests), minuteTokens: sum(leaseSeconds.tokens) },
    where: inWindow,
  });
  const day = prepareKeySums({ table: usageDay, sums: { dayTokens }, where: eq(usageDay.day, sql.placeholder("day")) });
  // The days as a list: with a range, SQLite would read the rows of all keys.
  const days = sql`(select cast(value->>0 as bigint) from ${jsonRows(sql.placeholder("days"))})`;
  const month = prepareKeySums({
    table: usageDay,
    sums: { monthTokens: dayTokens },
    where: inArray(usageDay.day, days),
  });
  const estimates = prepareKeySums({
    table: usageDay,
    sums: {
      day: sum(
        sql`case when ${usageDay.day} = ${sql.placeholder("today")} then ${usageDay.estimatedTokens} else 0 end`,
      ),
      month: sum(usageDay.estimatedTokens),
    },
    where: inArray(usageDay.day, days),
  });
  const { day: dayColumn, requestCount, inputTokens, outputTokens, estimatedTokens } = usageDay;
  const daily = db
    .select({ day: dayColumn, requestCount, inputTokens, outputTokens, estimatedTokens })
    .from(usageDay)
    .where(and(inArray(dayColumn, days), eq(usageDay.keyId, sql.placeholder("keyId"))))
    .orderBy(asc(dayColumn))
    .prepare();
  const seconds = db
    .select({
      second: leaseSeconds.second,
      requests: sum(leaseSeconds.requests).mapWith(Number),
      tokens: sum(leaseSeconds.tokens).mapWith(Number),
    })
    .from(leaseSeconds)
    .where(and(eq(leaseSeconds.keyId, sql.placeholder("keyId")), inWindow))
    .groupBy(leaseSeconds.second)
    .orderBy(asc(leaseSeconds.second))
    .prepare();

  return {
    held: (ids) => held(ids, {}),
    heldByOthers: (ids, instance) => heldByOthers(ids, { instance }),
    minute: (ids, now) => minute(ids, windowOf(now)),
    day: (ids, now) => day(ids, { day: dayNumberOf(now) }),
    month: (ids, now) => month(ids, { days: daysOfMonth(now) }),
    async estimatesOf(ids, now) {
      const found = await estimates(ids, { today: dayNumberOf(now), days: daysOfMonth(now) });
      return (keyId) => found.get(keyId) ?? { day: 0, month: 0 };
    },
    listDays: async (keyId, first, last) => daily.execute({ keyId, days: daysJson(first, last + 1) }),
    seconds: async (keyId, now) => seconds.execute({ keyId, ...windowOf(now) }),
  };
}

function daysOfMonth(now: number): string {
  const { firstDay, nextFirstDay } = monthOf(now);
  return daysJson(firstDay, nextFirstDay);
}

const daysJson = (from: number, to: number): string =>
  JSON.stringify(Array.from({ length: to - from }, (_, index) => [from + index]));
