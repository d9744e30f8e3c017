import { and, asc, eq, gt, inArray, lt, type SQL, sql } from "drizzle-orm";
import type { KeyId, KeyLimits } from "../domain.ts";
import { dayNumberOf, monthOf } from "../time/seoul.ts";
import type { Engine } from "./engine.ts";
import { holdsPlace, type KeyLoad, type KeySecond, windowSeconds } from "./limit-windows.ts";
import type { AdmissionRequest, LimitStore } from "./store.ts";

export interface Loads {
  /** Reads only what the limits of the requests' keys need; the rest is 0. */
  ofRequests(requests: readonly AdmissionRequest[], now: number): Promise<(keyId: KeyId) => KeyLoad>;
  ofKeys(keyIds: readonly KeyId[], now: number): Promise<(keyId: KeyId) => KeyLoad>;
  listDays: LimitStore["listDays"];
  /** The seconds of the last minute, oldest first. */
  seconds(keyId: KeyId, now: number): Promise<KeySecond[]>;
}

const noLoad: KeyLoad = {
  inFlight: 0,
  reserved: 0,
  minuteRequests: 0,
  minuteTokens: 0,
  dayTokens: 0,
  monthTokens: 0,
};

/** What a limit is compared with. */
type Source = "held" | "minute" | "day" | "month";

const needs: Readonly<Record<Source, (limits: KeyLimits) => boolean>> = {
  held: holdsPlace,
  minute: (limits) => limits.requests_per_minute !== null || limits.tokens_per_minute !== null,
  day: (limits) => limits.tokens_per_day !== null,
  month: (limits) => limits.tokens_per_month !== null,
};

export function prepareLoads(engine: Engine): Loads {
  const { readLoads, ...others } = prepareReads(engine);

  async function load(idsOf: (source: Source) => readonly KeyId[], now: number): Promise<(keyId: KeyId) => KeyLoad> {
    const byKey = new Map<KeyId, KeyLoad>();
    const of = (keyId: KeyId): KeyLoad => {
      const found = byKey.get(keyId) ?? { ...noLoad };
      byKey.set(keyId, found);
      return found;
    };
    for (const { keyId, source, amount, tokens } of await readLoads(idsOf, now)) {
      const loaded = of(keyId);
      if (source === 0) [loaded.inFlight, loaded.reserved] = [amount, tokens];
      else if (source === 1) [loaded.minuteRequests, loaded.minuteTokens] = [amount, tokens];
      else if (source === 2) loaded.dayTokens = amount;
      else loaded.monthTokens = amount;
    }
    return of;
  }

  return {
    ofRequests: (requests, now) => {
      const limitsOf = new Map(requests.map(({ keyId, limits }) => [keyId, limits]));
      const idsOf = (source: Source): KeyId[] =>
        [...limitsOf].flatMap(([keyId, limits]) => (needs[source](limits) ? [keyId] : []));
      return load(idsOf, now);
    },
    ofKeys: (ids, now) => load(() => ids, now),
    ...others,
  };
}

interface LoadRow {
  keyId: KeyId;
  /** The arm of the statement, from 0: held, minute, day, month. */
  source: number;
  amount: number;
  tokens: number;
}

interface Reads extends Pick<Loads, "seconds" | "listDays"> {
  readLoads(idsOf: (source: Source) => readonly KeyId[], now: number): Promise<LoadRow[]>;
}

function prepareReads(engine: Engine): Reads {
  const { db, jsonRows, tables } = engine;
  const { keySeconds, usageDay } = tables;
  const [after, before] = [sql.placeholder("after"), sql.placeholder("before")];
  const inWindow = and(gt(keySeconds.second, after), lt(keySeconds.second, before));
  const loads = prepareLoadStatement(engine);
  const { day, requestCount, inputTokens, outputTokens } = usageDay;
  const days = sql`(select cast(value->>0 as bigint) from ${jsonRows(sql.placeholder("days"))})`;
  const daily = db
    .select({ day, requestCount, inputTokens, outputTokens })
    .from(usageDay)
    .where(and(inArray(day, days), eq(usageDay.keyId, sql.placeholder("keyId"))))
    .orderBy(asc(day))
    .prepare();
  const seconds = db
    .select({ second: keySeconds.second, requests: keySeconds.requests, tokens: keySeconds.tokens })
    .from(keySeconds)
    .where(and(eq(keySeconds.keyId, sql.placeholder("keyId")), inWindow))
    .orderBy(asc(keySeconds.second))
    .prepare();
  const idsJson = (ids: readonly KeyId[]): string => JSON.stringify(ids.map((id) => [id]));

  return {
    async readLoads(idsOf, now) {
      const month = idsOf("month");
      return loads.execute({
        held: idsJson(idsOf("held")),
        minute: idsJson(idsOf("minute")),
        dayKeys: idsJson(idsOf("day")),
        month: idsJson(month),
        days: month.length === 0 ? "[]" : daysOfMonth(now),
        day: dayNumberOf(now),
        ...windowOf(now),
      });
    },
    listDays: async (keyId, first, last) => daily.execute({ keyId, days: daysJson(first, last + 1) }),
    seconds: async (keyId, now) => seconds.execute({ keyId, ...windowOf(now) }),
  };
}

/** One statement, so that what is held and what is counted are of one moment. */
function prepareLoadStatement({ db, tables, jsonRows }: Engine) {
  const { admissions, keySeconds, usageDay } = tables;
  const valuesOf = (name: string) => sql`(select cast(value->>0 as bigint) from ${jsonRows(sql.placeholder(name))})`;
  const sum = (expression: SQL) => sql`cast(sum(${expression}) as bigint)`;
  const dayTokens = sum(sql`${usageDay.inputTokens} + ${usageDay.outputTokens}`);
  // Ignores the future: a clock that was set back must not lock a key out. The days of a month are a list, because with a
  // range SQLite would read the rows of all keys.
  const arms = sql`(
    select ${admissions.keyId} as key_id, 0 as source, count(*) as amount, ${sum(sql`${admissions.tokens}`)} as tokens
      from ${admissions} where ${admissions.keyId} in ${valuesOf("held")} group by 1
    union all
    select ${keySeconds.keyId}, 1, ${sum(sql`${keySeconds.requests}`)}, ${sum(sql`${keySeconds.tokens}`)}
      from ${keySeconds} where ${keySeconds.keyId} in ${valuesOf("minute")}
      and ${keySeconds.second} > ${sql.placeholder("after")} and ${keySeconds.second} < ${sql.placeholder("before")}
      group by 1
    union all
    select ${usageDay.keyId}, 2, ${dayTokens}, 0 from ${usageDay}
      where ${usageDay.day} = ${sql.placeholder("day")} and ${usageDay.keyId} in ${valuesOf("dayKeys")} group by 1
    union all
    select ${usageDay.keyId}, 3, ${dayTokens}, 0 from ${usageDay}
      where ${usageDay.day} in ${valuesOf("days")} and ${usageDay.keyId} in ${valuesOf("month")} group by 1
  ) as loads`;
  const column = (name: string) => sql`${sql.raw(name)}`.mapWith(Number);
  return db
    .select({ keyId: column("key_id"), source: column("source"), amount: column("amount"), tokens: column("tokens") })
    .from(arms)
    .prepare();
}

function windowOf(now: number): { after: number; before: number } {
  const second = Math.floor(now / 1000);
  return { after: second - windowSeconds, before: second + windowSeconds };
}

function daysOfMonth(now: number): string {
  const { firstDay, nextFirstDay } = monthOf(now);
  return daysJson(firstDay, nextFirstDay);
}

const daysJson = (from: number, to: number): string =>
  JSON.stringify(Array.from({ length: to - from }, (_, index) => [from + index]));
