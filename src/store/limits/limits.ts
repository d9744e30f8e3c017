import { and, asc, eq, gt, inArray, isNotNull, isNull, notInArray, or, type SQL, sql } from "drizzle-orm";
import { dayNumberOf } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import { type CalendarWindow, daysOfWindow, isCalendarWindow, windowResetAt } from "../../time/windows.ts";
import type { Engine } from "../engine/engine.ts";
import {
  allSources,
  daysJson,
  isGivenDay,
  prepareAddTokens,
  prepareLoads,
  prepareTake,
  sourcesOf,
} from "./take-leases.ts";
import type { LimitStore } from "./contract.ts";
import { isAtLimit, noLoad, usedOf } from "./judge.ts";
import { parseRules } from "../keys/rules.ts";
import type { KeyId } from "../../domain/keys.ts";
import { hasLimit, limitKinds, limitNames, limitsAt } from "../../domain/limits.ts";

export function createLimitStore(engine: Engine, clock: WallClock): LimitStore {
  const { db, tables } = engine;
  const { keyRefusals, keys, subjects } = tables;
  const loadsOf = prepareLoads(engine);
  const { estimatesOf, listDays } = prepareDays(engine);
  return {
    take: prepareTake(engine, clock),
    async listLoads(keyIds) {
      const now = clock();
      const loads = await loadsOf(keyIds, allSources, { now });
      const today = and(eq(keyRefusals.day, dayNumberOf(now)), inArray(keyRefusals.keyId, [...keyIds]));
      const refusals = await db.select().from(keyRefusals).where(today);
      const refused = new Map(refusals.map(({ keyId, requests }) => [keyId, requests]));
      const estimates = await estimatesOf(keyIds, now);
      return keyIds.map((keyId) => ({
        keyId,
        ...(loads.get(keyId) ?? noLoad),
        refusedToday: refused.get(keyId) ?? 0,
        estimated: estimates.get(keyId) ?? {},
        readAt: now,
      }));
    },
    async countAtLimit() {
      const isUsable = and(eq(keys.isActive, true), or(isNull(keys.expiresAt), gt(keys.expiresAt, clock())));
      const ruled = and(isUsable, isNotNull(keys.rules));
      const found = await db.select({ id: keys.id, rules: keys.rules }).from(keys).where(ruled);
      const now = clock();
      const limited = found
        .map(({ id, rules }) => ({ id, limits: limitsAt(parseRules(rules ?? "{}"), now) }))
        .filter(({ limits }) => hasLimit(limits));
      let atLimit = 0;
      // Keys that need the same sums together: that of a month reads thirty times as many rows as that of a day.
      for (const [sources, group] of Map.groupBy(limited, ({ limits }) => sourcesOf(limits).join())) {
        const needed = allSources.filter((source) => sources.includes(source));
        const ids = group.map(({ id }) => id);
        const loads = await loadsOf(ids, needed, { now });
        atLimit += group.filter(({ id, limits }) => isAtLimit(loads.get(id) ?? noLoad, limits)).length;
      }
      return atLimit;
    },
    async listNotified() {
      const wants = sql`is_active and rules like '%"notify":true%'`;
      const found = await engine.rows<{ id: number; name: string; rules: string }>(
        sql`select id, name, rules from ${keys} where ${wants}
          union all select -id, name, rules from ${subjects} where ${wants}`,
        ["name", "rules"],
      );
      const now = clock();
      const ids = found.map((one) => one.id);
      const loads = await loadsOf(ids, ["day", "week", "month"], { now });
      return found.flatMap((one) => {
        const [limits, load] = [limitsAt(parseRules(one.rules), now), loads.get(one.id) ?? noLoad];
        return limitNames.flatMap((limit) => {
          const [most, { window, unit }] = [limits[limit], limitKinds[limit]];
          if (most === null || !isCalendarWindow(window)) return [];
          const resetsAt = windowResetAt(window, now);
          return [{ id: one.id, name: one.name, limit, unit, used: usedOf(load, limit), most, resetsAt }];
        });
      });
    },
    listDays,
    ...prepareInstances(engine, clock),
  };
}

/** What keys used by day, and what of their tokens of the windows of the calendar was charged by an estimate. */
function prepareDays(engine: Engine) {
  const { db, tables, prepareKeySums } = engine;
  const { usageDay } = tables;
  const { day, requestCount, inputTokens, outputTokens, estimatedTokens } = usageDay;
  const isGiven = isGivenDay(engine, "days");
  const since = (window: CalendarWindow): SQL =>
    sql`sum(case when ${day} >= ${sql.placeholder(window)} then ${estimatedTokens} else 0 end)`;
  const sums = { day: since("day"), week: since("week"), month: since("month") };
  const estimates = prepareKeySums({ table: usageDay, sums, where: isGiven });
  const estimatesOf = (keyIds: readonly KeyId[], now: number): ReturnType<typeof estimates> => {
    const firstOf = (window: CalendarWindow): number => daysOfWindow(window, now).from;
    const firsts = { day: firstOf("day"), week: firstOf("week"), month: firstOf("month") };
    const days = daysJson({ from: Math.min(firsts.week, firsts.month), to: firsts.day + 1 });
    return estimates(keyIds, { ...firsts, days });
  };
  const daily = db
    .select({ day, requestCount, inputTokens, outputTokens, estimatedTokens })
    .from(usageDay)
    .where(and(isGiven, eq(usageDay.keyId, sql.placeholder("keyId"))))
    .orderBy(asc(day))
    .prepare();
  const listDays: LimitStore["listDays"] = async (keyId, first, last) =>
    daily.execute({ keyId, days: daysJson({ from: first, to: last + 1 }) });
  return { estimatesOf, listDays };
}

/** For about so long a process is silent before the others release what it held. */
const deadSeconds = 15;

/** The processes that hold leases. What a dead one held is given back by the others. */
function prepareInstances(engine: Engine, clock: WallClock): Pick<LimitStore, "beat" | "listInstances" | "remove"> {
  const { db, transaction, pipeline, lock, tables } = engine;
  const { keyLeases, instances } = tables;
  const addTokens = prepareAddTokens(engine, deadSeconds);

  /** At the first beat of a process, or after the others took it for dead, such as after a long stop of the machine. */
  async function onListed(): Promise<void> {
    // One process at a time: otherwise another one may delete what this one, which it does not see listed yet, holds.
    await lock("admissions");
    // A process that died before it was listed is never removed. One that lives writes again what it holds.
    await db.delete(keyLeases).where(notInArray(keyLeases.instance, db.select({ id: instances.id }).from(instances)));
  }

  return {
    beat: (instance) =>
      transaction(async () => {
        const [own] = await db
          .insert(instances)
          .values({ id: instance, beat: 1 })
          .onConflictDoUpdate({ target: instances.id, set: { beat: sql`${instances.beat} + 1` } })
          .returning();
        if (own?.beat === 1) await onListed();
        return await db.select().from(instances).orderBy(asc(instances.id));
      }),
    listInstances: async () => db.select().from(instances),
    remove: (dead) =>
      transaction(async () => {
        // Each row is deleted by one of the processes that release it, which then charges it: its requests may have used
        // what they reserved.
        const held = await db
          .delete(keyLeases)
          .where(inArray(keyLeases.instance, [...dead]))
          .returning();
        const at = clock();
        const used = held.filter(({ tokens }) => tokens > 0);
        await pipeline(addTokens(used.map(({ keyId, instance, tokens }) => ({ keyId, writer: instance, tokens, at }))));
        await db.delete(instances).where(inArray(instances.id, [...dead]));
      }),
  };
}
