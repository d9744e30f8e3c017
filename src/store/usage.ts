import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import type { WallClock } from "../time/clock.ts";
import { dayNumberFrom, minuteOf, minutesPerDay, minutesPerHour, msPerMinute, offsetMinutes } from "../time/seoul.ts";
import { noUsage } from "../domain.ts";
import { prepareCountedResponses } from "./counted-responses.ts";
import { lastUsedAtAfter } from "./keys.ts";
import type { Engine, Statement } from "./engine.ts";
import { safeSum } from "./safe-sum.ts";
import { createModelNames } from "./model-names.ts";
import { prepareRequestLog } from "./request-log.ts";
import type { RequestLogLimits } from "./request-log-store.ts";
import type { UsageIncrement, UsageStore, UsageSum } from "./store.ts";
import { addedUsage, addSums, incrementOf, noSum } from "./usage-batch.ts";
import { createUsageReports } from "./usage-reports.ts";

/** The longest window is 30 days; its first bucket may begin up to a day earlier. */
const minuteRetentionMinutes = 32 * minutesPerDay;
/** Limits what one flush deletes; only one flush a minute prunes. After a long pause the following ones delete the rest. */
const maxPrunedMinutes = 5;
const flushRetentionMs = minutesPerDay * msPerMinute;

/** Hours of model sums; days are kept without limit. */
const modelHourRetentionHours = 91 * 24;

type CounterTable = Engine["tables"]["usageMinute" | "usageHour" | "usageDay"];

export function createUsageStore(engine: Engine, clock: WallClock, limits: RequestLogLimits): UsageStore {
  const { transaction, pipeline } = engine;
  const recordFlush = prepareRecordFlush(engine);
  const addStatements = prepareAdding(engine);
  const countedResponses = prepareCountedResponses(engine);
  const pruneStatements = preparePruning(engine);
  const modelNames = createModelNames(engine);
  const requestLog = prepareRequestLog(engine, limits);
  let prunedMinute = 0;
  const pruneOncePerMinute = (now: number): Statement[] => {
    if (minuteOf(now) === prunedMinute) return [];
    prunedMinute = minuteOf(now);
    return [...pruneStatements(now), countedResponses.prune(now)];
  };

  return {
    add: (increments, flush, responses = [], requests) => {
      const work = transaction(async () => {
        const now = clock();
        if (flush !== undefined && !(await recordFlush(flush.ledger, flush.number, now))) return undefined;
        const added = responses.length === 0 ? [] : await countedResponses.count(responses, now);
        const newTokens = responses.map((response, index) =>
          incrementOf(response, addedUsage(response, added[index] ?? noUsage)),
        );
        const rows = rowsOf(await modelNames.limit([...increments, ...newTokens]));
        await pipeline([
          ...(rows.length === 0 ? [] : addStatements(JSON.stringify(rows))),
          ...requestLog.write(requests, newTokens, responses),
          ...requestLog.prune(now, requests?.rows.length ?? 0),
          ...pruneOncePerMinute(now),
        ]);
        return added;
      });
      work.catch(modelNames.forget);
      return work;
    },
    ...prepareSums(engine),
    ...createUsageReports(engine),
  };
}

/** Columns in the order that `prepareAdding` reads; rows sorted, so that concurrent flushes lock them in the same order. */
function rowsOf(increments: readonly UsageIncrement[]): (number | string)[][] {
  return increments
    .toSorted((a, b) => a.keyId - b.keyId || a.minute - b.minute)
    .map((one) => [
      one.minute,
      one.keyId,
      one.requestCount,
      one.inputTokens,
      one.outputTokens,
      one.lastClosedAt,
      one.model ?? "",
      one.cachedInputTokens ?? 0,
      one.cachedBesideInputTokens ?? 0,
      one.reasoningTokens ?? 0,
    ]);
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

/** Six constant statements, however many keys and minutes: all rows are passed as one JSON parameter. */
function prepareAdding({ db, tables, jsonRows }: Engine): (rows: string) => Statement[] {
  const { keys, usageMinute, usageHour, usageDay, usageModelHour, usageModelDay } = tables;
  const rows = jsonRows(sql.placeholder("rows"));
  const column = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const sums = sql`sum(${column(2)}), sum(${column(3)}), sum(${column(4)})`;

  const addPer = (table: CounterTable, target: CounterTable["keyId" | "requestCount"][], period: SQL) =>
    db
      .insert(table)
      // Without "where true", SQLite takes the "on" of "on conflict" for a join's.
      .select(sql`select ${period}, ${column(1)}, ${sums} from ${rows} where true group by 1, 2 order by 1, 2`)
      .onConflictDoUpdate({ target, set: sumWithInserted(table) })
      .prepare();

  const addPerModel = (table: ModelTable, period: ModelTable["keyId"], periodOf: SQL) =>
    db
      .insert(table)
      .select(
        sql`select ${periodOf}, ${column(1)}, value->>6, ${sums}, sum(${column(7)}), sum(${column(8)}), sum(${column(9)})
          from ${rows} where true group by 1, 2, 3 order by 1, 2, 3`,
      )
      .onConflictDoUpdate({
        target: [period, table.keyId, table.model] as never,
        set: {
          ...sumWithInserted(table),
          cachedInputTokens: sql`${table.cachedInputTokens} + excluded.cached_input_tokens`,
          cachedBesideInputTokens: sql`${table.cachedBesideInputTokens} + excluded.cached_beside_input_tokens`,
          reasoningTokens: sql`${table.reasoningTokens} + excluded.reasoning_tokens`,
        },
      })
      .prepare();
  const hour = sql`${column(0)} / ${minutesPerHour}`;
  const day = sql`(${column(0)} + ${offsetMinutes}) / ${minutesPerDay}`;

  const statements = [
    addPer(usageMinute, [usageMinute.minute, usageMinute.keyId] as never, column(0)),
    addPer(usageHour, [usageHour.hour, usageHour.keyId] as never, hour),
    addPer(usageDay, [usageDay.day, usageDay.keyId] as never, day),
    addPerModel(usageModelHour, usageModelHour.hour as never, hour),
    addPerModel(usageModelDay, usageModelDay.day as never, day),
    // Last: an update locks rows in any order, but a flush with the same keys already waits for their day rows.
    db
      .update(keys)
      .set({
        requestCount: sql`${keys.requestCount} + added.requests`,
        inputTokens: sql`${keys.inputTokens} + added.input`,
        outputTokens: sql`${keys.outputTokens} + added.output`,
        lastUsedAt: lastUsedAtAfter(sql`added.used_at`, tables),
      })
      .from(
        sql`(select ${column(1)} as key_id, sum(${column(2)}) as requests, sum(${column(3)}) as input,
          sum(${column(4)}) as output, max(${column(5)}) as used_at from ${rows} group by 1 order by 1) as added`,
      )
      .where(eq(keys.id, sql`added.key_id`))
      .prepare(),
  ];

  return (json) => statements.map((statement) => () => statement.execute({ rows: json }));
}

type ModelTable = Engine["tables"]["usageModelHour" | "usageModelDay"];

const sumWithInserted = (table: CounterTable | ModelTable) => ({
  requestCount: sql`${table.requestCount} + excluded.request_count`,
  inputTokens: sql`${table.inputTokens} + excluded.input_tokens`,
  outputTokens: sql`${table.outputTokens} + excluded.output_tokens`,
});

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
