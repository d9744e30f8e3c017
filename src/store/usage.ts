import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { WallClock } from "../time/clock.ts";
import { dayNumberFrom, minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
import { noUsage } from "../domain.ts";
import { prepareCountedResponses } from "./counted-responses.ts";
import { lastUsedAtAfter } from "./keys.ts";
import { prepareSettling } from "./limits.ts";
import type { Engine, Statement } from "./engine.ts";
import { safeSum } from "./safe-sum.ts";
import { createModelNames } from "./model-names.ts";
import { prepareRequestLog, prepareRequestLogPruning } from "./request-log.ts";
import type { RequestLogLimits } from "./request-log-store.ts";
import type { UsageIncrement, UsageStore, UsageSum } from "./usage-store.ts";
import { addedUsage, addSums, incrementOf, noSum } from "./usage-batch.ts";
import { createUsageReports } from "./usage-reports.ts";
import { dayOf, hourOf, sumModelRows, sumRows } from "./usage-rows.ts";

/** The longest window is 30 days; its first bucket may begin up to a day earlier. */
const minuteRetentionMinutes = 32 * minutesPerDay;
/** Limits what one flush deletes; only one flush a minute prunes. After a long pause the following ones delete the rest. */
const maxPrunedMinutes = 5;
const flushRetentionMs = minutesPerDay * msPerMinute;

/** Hours of model sums; days are kept without limit. */
const modelHourRetentionHours = 91 * 24;

type CounterTable = Engine["tables"]["usageMinute" | "usageHour" | "usageDay"];
type ModelTable = Engine["tables"]["usageModelHour" | "usageModelDay"];

export function createUsageStore(engine: Engine, clock: WallClock, limits: RequestLogLimits): UsageStore {
  const countedResponses = prepareCountedResponses(engine);
  const pruneStatements = preparePruning(engine);
  const pruneRequestLog = prepareRequestLogPruning(engine, limits);
  let prunedMinute = 0;
  const pruneOncePerMinute = (now: number): Statement[] => {
    if (minuteOf(now) === prunedMinute) return [];
    prunedMinute = minuteOf(now);
    return [...pruneStatements(now), countedResponses.prune(now)];
  };
  return {
    add: prepareAddUsage(engine, clock, (now) => [...pruneRequestLog(now), ...pruneOncePerMinute(now)]),
    ...prepareSums(engine),
    ...createUsageReports(engine),
  };
}

/** @param prune what else a flush runs */
export function prepareAddUsage(
  engine: Engine,
  clock: WallClock,
  prune: (now: number) => Statement[] = () => [],
): UsageStore["add"] {
  const recordFlush = prepareRecordFlush(engine);
  const addStatements = prepareAdding(engine);
  const countedResponses = prepareCountedResponses(engine);
  const modelNames = createModelNames(engine);
  const logStatements = prepareRequestLog(engine);
  const settle = prepareSettling(engine);
  return (increments, flush, responses = [], requests, settled = []) => {
    const work = engine.transaction(async () => {
      const now = clock();
      if (flush !== undefined && !(await recordFlush(flush.ledger, flush.number, now))) return undefined;
      const added = responses.length === 0 ? [] : await countedResponses.count(responses, now);
      const newTokens = responses.map((response, index) =>
        incrementOf(response, addedUsage(response, added[index] ?? noUsage)),
      );
      const all = await modelNames.limit([...increments, ...newTokens]);
      await engine.pipeline([
        ...(all.length === 0 ? [] : addStatements(all)),
        ...logStatements(requests, newTokens, responses),
        ...settle(settled, all),
        ...prune(now),
      ]);
      return added;
    });
    work.catch(modelNames.forget);
    return work;
  };
}

/** Records the last flush of each ledger. Resolves with false if this flush or a later one is recorded. */
function prepareRecordFlush({ db, tables: { usageFlushes } }: Engine) {
  const upsert = db
    .insert(usageFlushes)
    .values({
      ledger: sql.placeholder("ledger"),
      flush: sql.placeholder("flush"),
      writtenAt: sql.placeholder("now"),
    })
    .onConflictDoUpdate({
      target: usageFlushes.ledger,
      set: { flush: sql`excluded.flush`, writtenAt: sql`excluded.written_at` },
      setWhere: sql`excluded.flush > ${usageFlushes.flush}`,
    })
    .returning({ ledger: usageFlushes.ledger })
    .prepare();
  return async (ledger: string, flush: number, now: number): Promise<boolean> => {
    return (await upsert.execute({ ledger, flush, now })).length > 0;
  };
}

const counters = ["requestCount", "inputTokens", "outputTokens"] as const;
const modelCounters = [...counters, "cachedInputTokens", "cachedBesideInputTokens", "reasoningTokens"] as const;

/** Six constant statements, however many keys and minutes. */
function prepareAdding({ db, tables, jsonRows, prepareInsert }: Engine) {
  const { keys, usageMinute, usageHour, usageDay, usageModelHour, usageModelDay } = tables;
  const prepare = (table: CounterTable, period: string) =>
    prepareInsert(table, [period, "keyId", ...counters], { key: [period, "keyId"], added: counters });
  const prepareModels = (table: ModelTable, period: string) =>
    prepareInsert(table, [period, "keyId", "model", ...modelCounters], {
      key: [period, "keyId", "model"],
      added: modelCounters,
    });
  const addMinutes = prepare(usageMinute, "minute");
  const addHours = prepare(usageHour, "hour");
  const addDays = prepare(usageDay, "day");
  const addModelHours = prepareModels(usageModelHour, "hour");
  const addModelDays = prepareModels(usageModelDay, "day");

  const column = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const addToKeys = db
    .update(keys)
    .set({
      requestCount: sql`${keys.requestCount} + added.requests`,
      inputTokens: sql`${keys.inputTokens} + added.input`,
      outputTokens: sql`${keys.outputTokens} + added.output`,
      lastUsedAt: lastUsedAtAfter(sql`added.used_at`, tables),
    })
    .from(
      sql`(select ${column(0)} as key_id, sum(${column(1)}) as requests, sum(${column(2)}) as input,
        sum(${column(3)}) as output, max(${column(4)}) as used_at
        from ${jsonRows(sql.placeholder("rows"))} group by 1 order by 1) as added`,
    )
    .where(eq(keys.id, sql`added.key_id`))
    .prepare();

  return (increments: readonly UsageIncrement[]): Statement[] => {
    const rows = JSON.stringify(
      increments.map((one) => [one.keyId, one.requestCount, one.inputTokens, one.outputTokens, one.lastClosedAt]),
    );
    return [
      addMinutes(sumRows(increments, ({ minute }) => minute)),
      addHours(sumRows(increments, hourOf)),
      addDays(sumRows(increments, dayOf)),
      addModelHours(sumModelRows(increments, hourOf)),
      addModelDays(sumModelRows(increments, dayOf)),
      // Last: an update locks rows in any order, but a flush with the same keys already waits for their day rows.
      () => addToKeys.execute({ rows }),
    ];
  };
}

function preparePruning({
  db,
  tables: { usageMinute, usageModelHour, usageFlushes },
}: Engine): (now: number) => Statement[] {
  const before = sql.placeholder("before");
  const pruneMinutes = db
    .delete(usageMinute)
    .where(
      and(
        lt(usageMinute.minute, before),
        lt(usageMinute.minute, sql`(select min(minute) + ${maxPrunedMinutes} from ${usageMinute})`),
      ),
    )
    .prepare();
  const pruneModelHours = db
    .delete(usageModelHour)
    .where(
      and(lt(usageModelHour.hour, before), lt(usageModelHour.hour, sql`(select min(hour) + 1 from ${usageModelHour})`)),
    )
    .prepare();
  const pruneFlushes = db.delete(usageFlushes).where(lt(usageFlushes.writtenAt, before)).prepare();
  return (now) => [
    () => pruneMinutes.execute({ before: minuteOf(now) - minuteRetentionMinutes }),
    () => pruneModelHours.execute({ before: Math.floor(minuteOf(now) / minutesPerHour) - modelHourRetentionHours }),
    () => pruneFlushes.execute({ before: now - flushRetentionMs }),
  ];
}

function prepareSums({ db, tables }: Engine): Pick<UsageStore, "sumOfDay" | "sumOfMinutes" | "sumOfKeys"> {
  const { keys, usageDay, usageHour, usageMinute } = tables;
  const sumOf = (table: CounterTable | typeof keys) => ({
    requestCount: sql`coalesce(${safeSum(table.requestCount)}, 0)`.mapWith(Number),
    inputTokens: sql`coalesce(${safeSum(table.inputTokens)}, 0)`.mapWith(Number),
    outputTokens: sql`coalesce(${safeSum(table.outputTokens)}, 0)`.mapWith(Number),
  });
  const sumOfMinuteRows = async (from: number, to: number): Promise<UsageSum> =>
    firstOrZero(
      await db
        .select(sumOf(usageMinute))
        .from(usageMinute)
        .where(and(gte(usageMinute.minute, from), lt(usageMinute.minute, to))),
    );

  return {
    async sumOfDay(day) {
      return firstOrZero(
        await db
          .select(sumOf(usageDay))
          .from(usageDay)
          .where(eq(usageDay.day, dayNumberFrom(day))),
      );
    },
    async sumOfMinutes(from, to) {
      const firstHour = Math.ceil(from / minutesPerHour);
      const lastHour = Math.floor(to / minutesPerHour);
      if (firstHour >= lastHour) return await sumOfMinuteRows(from, to);
      const hours = await db
        .select(sumOf(usageHour))
        .from(usageHour)
        .where(and(gte(usageHour.hour, firstHour), lt(usageHour.hour, lastHour)));
      const before = await sumOfMinuteRows(from, firstHour * minutesPerHour);
      const after = await sumOfMinuteRows(lastHour * minutesPerHour, to);
      return addSums(firstOrZero(hours), addSums(before, after));
    },
    async sumOfKeys() {
      return firstOrZero(await db.select(sumOf(keys)).from(keys));
    },
  };
}

function firstOrZero(rows: UsageSum[]): UsageSum {
  return rows[0] ?? noSum;
}
