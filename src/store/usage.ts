import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import type { WallClock } from "../time/clock.ts";
import { dayNumberFrom, minuteOf, minutesPerDay, minutesPerHour, offsetMinutes } from "../time/seoul.ts";
import { lastUsedAtAfter } from "./keys.ts";
import type { Engine, Statement } from "./engine.ts";
import type { UsageIncrement, UsageStore, UsageSum } from "./store.ts";
import { createUsageReports } from "./usage-reports.ts";

/** The longest window is 30 days; a bucket may begin up to a day before it. */
const keptMinutes = 32 * minutesPerDay;
/** Minutes deleted in one flush at most, so that a long standstill is not cleared in one go. One flush a minute prunes. */
const prunedMinutes = 5;
const flushesKeptMs = 24 * 60 * minutesPerHour * 1000;

type CounterTable = Engine["tables"]["usageMinute" | "usageHour" | "usageDay"];

export function createUsageStore(engine: Engine, clock: WallClock): UsageStore {
  const { transaction, pipeline } = engine;
  const isNewFlush = prepareIsNewFlush(engine);
  const counting = prepareCounting(engine);
  const pruning = preparePruning(engine);
  let prunedAt = 0;
  const pruningDue = (now: number): Statement[] => {
    if (minuteOf(now) === prunedAt) return [];
    prunedAt = minuteOf(now);
    return pruning(now);
  };

  return {
    add: (counts, flush) =>
      transaction(async () => {
        if (flush !== undefined && !(await isNewFlush(flush.ledger, flush.number, clock()))) return;
        await pipeline([...counting(JSON.stringify(rowsOf(counts))), ...pruningDue(clock())]);
      }),
    ...prepareSums(engine),
    ...createUsageReports(engine),
  };
}

/** In the order of the columns that `prepareCounting` reads. Sorted, so that two writers lock rows in the same order. */
function rowsOf(counts: readonly UsageIncrement[]): number[][] {
  return counts
    .toSorted((a, b) => a.keyId - b.keyId || a.minute - b.minute)
    .map((count) => [
      count.minute,
      count.keyId,
      count.requestCount,
      count.inputTokens,
      count.outputTokens,
      count.lastClosedAt,
    ]);
}

/** Remembers each ledger's last flush: one that is sent again, because its answer got lost, is recognised. */
function prepareIsNewFlush({ db, tables: { usageFlushes } }: Engine) {
  const remember = db
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
    return (await remember.execute({ ledger, flush, now })).length > 0;
  };
}

/** A handful of constant statements, however many keys and minutes: all rows arrive as one JSON parameter. */
function prepareCounting({ db, tables, jsonRows }: Engine): (rows: string) => Statement[] {
  const { keys, usageMinute, usageHour, usageDay } = tables;
  const rows = jsonRows(sql.placeholder("rows"));
  const column = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const sums = sql`sum(${column(2)}), sum(${column(3)}), sum(${column(4)})`;

  const countPer = (table: CounterTable, target: CounterTable["keyId" | "requestCount"][], period: SQL) =>
    db
      .insert(table)
      // "where true" tells SQLite that the "on" which follows is no join's.
      .select(sql`select ${period}, ${column(1)}, ${sums} from ${rows} where true group by 1, 2 order by 1, 2`)
      .onConflictDoUpdate({ target, set: addedTo(table) })
      .prepare();

  const statements = [
    countPer(usageMinute, [usageMinute.minute, usageMinute.keyId] as never, column(0)),
    countPer(usageHour, [usageHour.hour, usageHour.keyId] as never, sql`${column(0)} / ${minutesPerHour}`),
    countPer(
      usageDay,
      [usageDay.day, usageDay.keyId] as never,
      sql`(${column(0)} + ${offsetMinutes}) / ${minutesPerDay}`,
    ),
    // An update takes its rows in any order, but who counts for the same keys has been kept waiting at their days by now.
    db
      .update(keys)
      .set({
        requestCount: sql`${keys.requestCount} + counted.requests`,
        inputTokens: sql`${keys.inputTokens} + counted.input`,
        outputTokens: sql`${keys.outputTokens} + counted.output`,
        lastUsedAt: lastUsedAtAfter(sql`counted.used_at`, tables),
      })
      .from(
        sql`(select ${column(1)} as key_id, sum(${column(2)}) as requests, sum(${column(3)}) as input,
          sum(${column(4)}) as output, max(${column(5)}) as used_at from ${rows} group by 1 order by 1) as counted`,
      )
      .where(eq(keys.id, sql`counted.key_id`))
      .prepare(),
  ];

  return (json) => statements.map((statement) => () => statement.execute({ rows: json }));
}

const addedTo = (table: CounterTable) => ({
  requestCount: sql`${table.requestCount} + excluded.request_count`,
  inputTokens: sql`${table.inputTokens} + excluded.input_tokens`,
  outputTokens: sql`${table.outputTokens} + excluded.output_tokens`,
});

function preparePruning({ db, tables: { usageMinute, usageFlushes } }: Engine): (now: number) => Statement[] {
  const before = sql.placeholder("before");
  const pruneMinutes = db
    .delete(usageMinute)
    .where(
      and(
        lt(usageMinute.minute, before),
        lt(usageMinute.minute, sql`(select min(minute) + ${prunedMinutes} from ${usageMinute})`),
      ),
    )
    .prepare();
  const forgetFlushes = db.delete(usageFlushes).where(lt(usageFlushes.writtenAt, before)).prepare();
  return (now) => [
    () => pruneMinutes.execute({ before: minuteOf(now) - keptMinutes }),
    () => forgetFlushes.execute({ before: now - flushesKeptMs }),
  ];
}

function prepareSums({ db, tables }: Engine): Pick<UsageStore, "sumOfDay" | "sumOfMinutes" | "sumOfKeys"> {
  const { keys, usageDay, usageHour, usageMinute } = tables;
  const sumOf = (table: CounterTable | typeof keys) => ({
    requestCount: sql`coalesce(sum(${table.requestCount}), 0)`.mapWith(Number),
    inputTokens: sql`coalesce(sum(${table.inputTokens}), 0)`.mapWith(Number),
    outputTokens: sql`coalesce(sum(${table.outputTokens}), 0)`.mapWith(Number),
  });
  const sumOfMinuteRows = async (from: number, to: number): Promise<UsageSum> =>
    only(
      await db
        .select(sumOf(usageMinute))
        .from(usageMinute)
        .where(and(gte(usageMinute.minute, from), lt(usageMinute.minute, to))),
    );

  return {
    async sumOfDay(day) {
      return only(
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
      return plus(only(hours), plus(before, after));
    },
    async sumOfKeys() {
      return only(await db.select(sumOf(keys)).from(keys));
    },
  };
}

function only(rows: UsageSum[]): UsageSum {
  return rows[0] ?? { requestCount: 0, inputTokens: 0, outputTokens: 0 };
}

const plus = (a: UsageSum, b: UsageSum): UsageSum => ({
  requestCount: a.requestCount + b.requestCount,
  inputTokens: a.inputTokens + b.inputTokens,
  outputTokens: a.outputTokens + b.outputTokens,
});
