import { and, eq, gte, lt, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import { dayNumberFrom, minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../../time/seoul.ts";
import { noUsage } from "../../domain/usage.ts";
import { prepareCountedResponses } from "./counted-responses.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { safeSum } from "../engine/safe-sum.ts";
import { prepareRequestLogPruning } from "../requests/log.ts";
import { keptMinutes, type Retention } from "../retention.ts";
import type { UsageStore, UsageSum } from "./contract.ts";
import { addedUsage, addSums, incrementOf, noSum } from "./batch.ts";
import { createUsageReports } from "../reports/reports.ts";
import { createUsageWriter } from "./writer.ts";

/** Limits what one flush deletes; only one flush a minute prunes. After a long pause the following ones delete the rest. */
const maxPrunedMinutes = 5;
const flushRetentionMs = minutesPerDay * msPerMinute;

/** Hours of model sums; days are kept without limit. */
const modelHourRetentionHours = 91 * 24;

export function createUsageStore(engine: Engine, clock: WallClock, retention: Retention): UsageStore {
  const countedResponses = prepareCountedResponses(engine);
  const pruneStatements = preparePruning(engine, retention);
  const pruneRequestLog = prepareRequestLogPruning(engine, retention.requestLog);
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
function prepareAddUsage(engine: Engine, clock: WallClock, prune: (now: number) => Statement[]): UsageStore["add"] {
  const countedResponses = prepareCountedResponses(engine);
  const { transaction, recordFlush, write } = createUsageWriter(engine);
  return async (increments, flush, responses = [], requests, settled = []) => {
    const now = clock();
    const pruning = prune(now);
    const written = increments.length + responses.length + settled.length + pruning.length;
    if (flush === undefined && requests === undefined && written === 0) return [];
    return transaction(async () => {
      if (flush !== undefined && !(await recordFlush(flush, now))) return undefined;
      const added = responses.length === 0 ? [] : await countedResponses.count(responses, now);
      const newTokens = responses.map((response, index) =>
        incrementOf(response, addedUsage(response, added[index] ?? noUsage)),
      );
      await write({ increments: [...increments, ...newTokens], requests, responses, newTokens, settled }, pruning);
      return added;
    });
  };
}

function preparePruning(
  { db, tables: { usageMinute, usageModelHour, usageFlushes } }: Engine,
  retention: Retention,
): (now: number) => Statement[] {
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
    () => pruneMinutes.execute({ before: minuteOf(now) - keptMinutes(retention) }),
    () => pruneModelHours.execute({ before: Math.floor(minuteOf(now) / minutesPerHour) - modelHourRetentionHours }),
    () => pruneFlushes.execute({ before: now - flushRetentionMs }),
  ];
}

function prepareSums({ db, tables }: Engine): Pick<UsageStore, "sumOfDay" | "sumOfMinutes" | "sumOfKeys"> {
  const { keys, usageDay, usageHour, usageMinute } = tables;
  const sumOf = (table: typeof usageMinute | typeof usageHour | typeof usageDay | typeof keys) => ({
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
