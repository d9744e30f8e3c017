import { and, asc, eq, inArray, notInArray, type SQL, sql } from "drizzle-orm";
import { type CalendarWindow, dayNumberOf, daysOfWindow, isCalendarWindow, windowResetAt } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
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
import type { LimitStore, UsedLimit } from "./contract.ts";
import { noLoad, usedOf } from "./judge.ts";
import { parseRules } from "../keys/rules.ts";
import type { KeyId } from "../../domain/keys.ts";
import { hasLimit, limitKinds, limitNames, limitsAt } from "../../domain/limits.ts";

export function createLimitStore(engine: Engine, clock: WallClock): LimitStore {
  const { db, tables } = engine;
  const { keyRefusals, keys, subjects } = tables;
  const loadsOf = prepareLoads(engine);
  const { estimatesOf, listDays } = prepareDays(engine);

  /** The limits of the keys, teams and users that are selected. */
  async function listUsed(ofKeys: SQL, ofSubjects: SQL, now: number): Promise<UsedLimit[]> {
    const found = await engine.rows<{ id: number; name: string; rules: string }>(
      sql`select id, name, rules from ${keys} where ${ofKeys}
        union all select -id, name, rules from ${subjects} where ${ofSubjects}`,
      ["name", "rules"],
    );
    const limited = found
      .map(({ id, name, rules }) => ({ id, name, limits: limitsAt(parseRules(rules), now) }))
      .filter(({ limits }) => hasLimit(limits));
    const all: UsedLimit[] = [];
    // Those that need the same sums together: that of a month reads thirty times as many rows as that of a day.
    for (const [sources, group] of Map.groupBy(limited, ({ limits }) => sourcesOf(limits).join())) {
      const needed = allSources.filter((source) => sources.includes(source));
      const ids = group.map(({ id }) => id);
      const loads = await loadsOf(ids, needed, { now });
      for (const { id, name, limits } of group) {
        for (const limit of limitNames) {
          const most = limits[limit];
          if (most !== null) all.push({ id, name, limit, used: usedOf(loads.get(id) ?? noLoad, limit), most });
        }
      }
    }
    return all;
  }

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
    async listNear(share, count) {
      const now = clock();
      const usable = sql`is_active and rules is not null`;
      const used = await listUsed(
        sql`${usable} and (expires_at is null or expires_at > ${now})`,
        sql`${usable} and kind = 'team'`,
        now,
      );
      const shareOf = (one: UsedLimit): number => one.used / one.most;
      const near = used.filter((one) => shareOf(one) >= share).toSorted((a, b) => shareOf(b) - shareOf(a));
      // Each with the limit that is nearest.
      return [...Map.groupBy(near, ({ id }) => id).values()].flatMap(([one]) => one ?? []).slice(0, count);
    },
    async listNotified() {
      const now = clock();
      const wants = sql`is_active and rules like '%"notify":true%'`;
      return (await listUsed(wants, wants, now)).flatMap((one) => {
        const { window, unit } = limitKinds[one.limit];
        return isCalendarWindow(window) ? [{ ...one, unit, resetsAt: windowResetAt(window, now) }] : [];
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
