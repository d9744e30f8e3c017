import { eq, sql } from "drizzle-orm";
import { minutesPerDay, minutesPerHour, offsetMinutes } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { lastUsedAtAfter } from "../keys/keys.ts";
import { prepareSettling } from "../limits/take-leases.ts";
import { toStorageError } from "../storage-error.ts";
import { type FlushedUsage, partsByKey, type RefusedUsage, refusedOf } from "./batch.ts";
import { createModelNames } from "./model-names.ts";
import { prepareRequestLog } from "../requests/log.ts";
import type { FlushId } from "./contract.ts";
import { chargeFields, countedFields, subjectsOf, type UsageIncrement, usageTotals } from "../../domain/usage.ts";

/** @param idsOf the rows that an increment is added to */
type AddSums = (increments: readonly UsageIncrement[], idsOf?: typeof subjectsOf) => Statement;

export type UsageWriter = ReturnType<typeof createUsageWriter>;

interface WrittenUsage extends FlushedUsage {
  /** The tokens that each of the responses adds. */
  newTokens?: readonly UsageIncrement[];
  /** Whose sums of days do not hold an increment yet; by default those of all. */
  missingInDays?: typeof subjectsOf;
}

export function createUsageWriter(engine: Engine) {
  const addStatements = prepareAdding(engine);
  const addDays = prepareAddDays(engine);
  const modelNames = createModelNames(engine);
  const logStatements = prepareRequestLog(engine);
  const settle = prepareSettling(engine);
  return {
    /** The same key by key, where the database refuses the whole. @returns what it refuses of it */
    async writeByKey(usage: FlushedUsage, write: (part: FlushedUsage) => Promise<void>): Promise<RefusedUsage[]> {
      const refused: RefusedUsage[] = [];
      for (const part of partsByKey(usage)) {
        try {
          await engine.savepoint(() => write(part));
        } catch (error) {
          const { isRefusal, message } = toStorageError(error);
          if (!isRefusal) throw error;
          modelNames.forget();
          refused.push(refusedOf(part, message));
        }
      }
      return refused;
    },
    /** The other functions run within one. */
    transaction<T>(work: () => Promise<T>): Promise<T> {
      const committed = engine.transaction(work);
      committed.catch(modelNames.forget);
      return committed;
    },
    ...prepareFlushes(engine),
    /** Adds usage to all tables of counts, and requests to the log. */
    async write(usage: WrittenUsage): Promise<void> {
      const { increments, requests, responses, newTokens = [], settled, missingInDays = subjectsOf } = usage;
      const limited = await modelNames.limit(increments);
      await engine.pipeline([
        ...(limited.length === 0 ? [] : addStatements(limited, addDays(increments, missingInDays))),
        ...logStatements(requests, newTokens, responses),
        ...settle(settled, limited),
      ]);
    },
  };
}

function prepareFlushes({ db, tables: { usageFlushes } }: Engine) {
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
  const find = db
    .select({ flush: usageFlushes.flush })
    .from(usageFlushes)
    .where(eq(usageFlushes.ledger, sql.placeholder("ledger")))
    .prepare();
  return {
    /** Records the last flush of its ledger. Resolves with false if this flush or a later one is recorded. */
    async recordFlush({ ledger, number }: FlushId, now: number): Promise<boolean> {
      return (await upsert.execute({ ledger, flush: number, now })).length > 0;
    },
    /** 0 if none is recorded. */
    async findLastFlush(ledger: string): Promise<number> {
      return (await find.execute({ ledger }))[0]?.flush ?? 0;
    },
  };
}

/** A column of a table of sums, how many minutes a period has, and how many before the epoch the first one began. */
type Period = [column: string, minutes: number, before?: number];

/** In the tables by team and user. */
const none = 0;

const ofMinute: Period = ["minute", 1];
const ofHour: Period = ["hour", minutesPerHour];
const ofDay: Period = ["day", minutesPerDay, offsetMinutes];

const counters = ["requestCount", ...usageTotals] as const;
const modelCounters = ["requestCount", ...countedFields] as const;
const dayCounters = [...counters, ...chargeFields] as const;

/** Adds usage to a table of sums by period and key. */
function prepareAddSums(
  { prepareInsert }: Engine,
  table: Engine["tables"]["usageMinute" | "usageHour" | "usageDay"],
  [period, minutes, before = 0]: Period,
  added: readonly (typeof dayCounters)[number][] = counters,
): AddSums {
  const add = prepareInsert(table, [period, "keyId", ...added], { key: [period, "keyId"], added });
  return (increments, idsOf = ({ keyId }) => [keyId]) => {
    const rows: number[][] = [];
    for (const one of increments) {
      for (const id of idsOf(one)) {
        const row = [Math.floor((one.minute + before) / minutes), id];
        for (const field of added) row.push(one[field] ?? 0);
        rows.push(row);
      }
    }
    return add(rows);
  };
}

/** The same by model, team and user too. */
function prepareAddModels(
  { prepareInsert }: Engine,
  table: Engine["tables"]["usageModelHour" | "usageModelDay"],
  [period, minutes, before = 0]: Period,
): AddSums {
  const key = [period, "keyId", "model", "teamId", "userId"];
  const add = prepareInsert(table, [...key, ...modelCounters], { key, added: modelCounters });
  return (increments) =>
    add(
      increments.map((one) => [
        Math.floor((one.minute + before) / minutes),
        one.keyId,
        one.model ?? "",
        one.teamId ?? none,
        one.userId ?? none,
        ...modelCounters.map((field) => one[field] ?? 0),
      ]),
    );
}

/** Adds usage to the sums of days, which limits are compared with, those of teams and users too. */
export const prepareAddDays = (engine: Engine): AddSums =>
  prepareAddSums(engine, engine.tables.usageDay, ofDay, dayCounters);

/** Six constant statements, however many keys and minutes. */
function prepareAdding(engine: Engine) {
  const { db, tables, jsonRows, byIndex } = engine;
  const { keys, usageMinute, usageHour, usageModelHour, usageModelDay } = tables;
  const addMinutes = prepareAddSums(engine, usageMinute, ofMinute);
  const addHours = prepareAddSums(engine, usageHour, ofHour);
  const addModelHours = prepareAddModels(engine, usageModelHour, ofHour);
  const addModelDays = prepareAddModels(engine, usageModelDay, ofDay);

  const column = (position: number) => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const addToKeys = db
    .update(keys)
    .set({
      requestCount: sql`${keys.requestCount} + added.requests`,
      inputTokens: sql`${keys.inputTokens} + added.input`,
      outputTokens: sql`${keys.outputTokens} + added.output`,
      estimatedTokens: sql`${keys.estimatedTokens} + added.estimated`,
      lastUsedAt: lastUsedAtAfter(sql`added.used_at`, tables),
    })
    .from(
      sql`(select ${column(0)} as key_id, sum(${column(1)}) as requests, sum(${column(2)}) as input,
        sum(${column(3)}) as output, max(${column(4)}) as used_at, sum(${column(5)}) as estimated
        from ${jsonRows(sql.placeholder("rows"))} group by 1 order by 1) as added`,
    )
    .where(byIndex(keys.id, sql`added.key_id`))
    .prepare();

  return (increments: readonly UsageIncrement[], addDays: Statement): Statement[] => {
    const rows = JSON.stringify(
      increments.map((one) => [
        one.keyId,
        one.requestCount,
        one.inputTokens,
        one.outputTokens,
        one.lastClosedAt,
        one.estimatedTokens ?? 0,
      ]),
    );
    return [
      addMinutes(increments),
      addHours(increments),
      addDays,
      addModelHours(increments),
      addModelDays(increments),
      // Last: an update locks rows in any order, but a flush with the same keys already waits for their day rows.
      () => addToKeys.execute({ rows }),
    ];
  };
}
