import { and, type AnyColumn, asc, eq, gt, inArray, lt, type SQL, sql } from "drizzle-orm";
import { dayNumberOf, monthOf } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import { minuteWindowSeconds, type Window, windows } from "../../time/windows.ts";
import { type Counted, holdsPlace, type KeyLoad, type KeySecond, noLoad } from "./windows.ts";
import type { AdmissionRequest, LimitStore } from "./contract.ts";
import type { KeyId, KeyLimits } from "../../domain/keys.ts";
import { limitKinds, limitNames } from "../../domain/limits.ts";

export interface Loads {
  /** Reads only what the limits of the requests' keys need; the rest is 0. */
  ofRequests(requests: readonly AdmissionRequest[], now: number): Promise<(keyId: KeyId) => KeyLoad>;
  ofKeys(keyIds: readonly KeyId[], now: number): Promise<(keyId: KeyId) => KeyLoad>;
  listDays: LimitStore["listDays"];
  /** The seconds of the last minute, oldest first. */
  seconds(keyId: KeyId, now: number): Promise<KeySecond[]>;
}

/** The statement whose result a limit is compared with. */
type Source = "held" | Exclude<Window, "now">;

/** What is held comes first: if it is counted meanwhile, it is seen twice, and not missed. */
const sources = windows.map((window) => (window === "now" ? "held" : window));

/** Whether limits need what a source has. */
const needs = (limits: KeyLimits, source: Source): boolean =>
  source === "held"
    ? holdsPlace(limits)
    : limitNames.some((name) => limits[name] !== null && limitKinds[name].window === source);

export function prepareLoads(engine: Engine): Loads {
  const read = prepareReads(engine);

  async function load(idsOf: (source: Source) => readonly KeyId[], now: number) {
    const byKey = new Map<KeyId, KeyLoad>();
    const of = (keyId: KeyId): KeyLoad => {
      const found = byKey.get(keyId) ?? { ...noLoad };
      byKey.set(keyId, found);
      return found;
    };
    for (const source of sources) {
      const ids = idsOf(source);
      if (ids.length === 0) continue;
      for (const [keyId, part] of await read[source](ids, now)) Object.assign(of(keyId), part);
    }
    return of;
  }

  return {
    ofRequests: (requests, now) =>
      // Of all requests: two of a key may have come before and after a change of its limits.
      load(
        (source) => [...new Set(requests.filter(({ limits }) => needs(limits, source)).map(({ keyId }) => keyId))],
        now,
      ),
    ofKeys: (ids, now) => load(() => ids, now),
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
};

function prepareReads(engine: Engine): Reads & Pick<Loads, "seconds" | "listDays"> {
  const { db, tables, jsonRows, prepareKeySums } = engine;
  const { admissions, keySeconds, usageDay } = tables;
  const sum = (expression: AnyColumn | SQL): SQL => sql`sum(${expression})`;
  const [after, before] = [sql.placeholder("after"), sql.placeholder("before")];
  // Ignores the future: a clock that was set back must not lock a key out.
  const inWindow = and(gt(keySeconds.second, after), lt(keySeconds.second, before));
  const windowOf = (now: number) => {
    const second = Math.floor(now / 1000);
    return { after: second - minuteWindowSeconds, before: second + minuteWindowSeconds };
  };
  const dayTokens = sum(sql`${usageDay.inputTokens} + ${usageDay.outputTokens} + ${usageDay.besideTokens}`);

  const held = prepareKeySums({
    table: admissions,
    sums: { inFlight: sql`count(*)`, reserved: sum(admissions.tokens) },
  });
  const minute = prepareKeySums({
    table: keySeconds,
    sums: { minuteRequests: sum(keySeconds.requests), minuteTokens: sum(keySeconds.tokens) },
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
  const { day: dayColumn, requestCount, inputTokens, outputTokens, estimatedTokens } = usageDay;
  const daily = db
    .select({ day: dayColumn, requestCount, inputTokens, outputTokens, estimatedTokens })
    .from(usageDay)
    .where(and(inArray(dayColumn, days), eq(usageDay.keyId, sql.placeholder("keyId"))))
    .orderBy(asc(dayColumn))
    .prepare();
  const seconds = db
    .select({ second: keySeconds.second, requests: keySeconds.requests, tokens: keySeconds.tokens })
    .from(keySeconds)
    .where(and(eq(keySeconds.keyId, sql.placeholder("keyId")), inWindow))
    .orderBy(asc(keySeconds.second))
    .prepare();

  return {
    held: (ids) => held(ids, {}),
    minute: (ids, now) => minute(ids, windowOf(now)),
    day: (ids, now) => day(ids, { day: dayNumberOf(now) }),
    month: (ids, now) => month(ids, { days: daysOfMonth(now) }),
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
