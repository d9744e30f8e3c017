import { and, desc, eq, gte, lt, sql } from "drizzle-orm";
import type { SQLiteTable } from "drizzle-orm/sqlite-core";
import { dayNumberOf, minuteOf } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import type { CounterReading, ReconciledDay, ReconciliationStore, UsageStore } from "./contract.ts";
import { mapCounters, noUsage, reconciledFields, snakeCase, type Usage, usageTotals } from "../../domain/usage.ts";
import type { SettingsStore } from "../accounts/contract.ts";

/** The setting that holds the last reading of the only backend, as JSON; with a name after it, that of this one. */
const readingSetting = "backend_sample";
/** Which of those with names was the latest. */
const latestSetting = "backend_sample_latest";
/** Other processes take readings too. */
const minAgeMs = 30_000;
/** After a longer pause nothing is known of what was counted meanwhile. */
const maxAgeMs = 10 * 60_000;
/** The minutes of backends are written some seconds late. */
const lateMinutes = 1;

export function createReconciliationStore(
  engine: Engine,
  settings: SettingsStore,
  usage: Pick<UsageStore, "sumOfMinutes">,
): ReconciliationStore {
  const { db, transaction, lock, prepareInsert, tables } = engine;
  const { reconciliationDay, reconciliationBackendDay: backendTable } = tables;
  const prepareAdd = (table: SQLiteTable, ...key: string[]) =>
    prepareInsert(table, [...key, ...reconciledFields], { key, added: reconciledFields });
  const addDay = prepareAdd(reconciliationDay, "day");
  const addBackendDay = prepareAdd(backendTable, "day", "backend");

  async function findReading<T extends object>(name: string): Promise<T | undefined> {
    const text = await settings.find(name);
    return text === undefined ? undefined : (JSON.parse(text) as T);
  }

  async function addSince(last: CounterReading, reading: CounterReading): Promise<void> {
    const { backend } = reading;
    const [from, to] = [minuteOf(last.at), minuteOf(reading.at)];
    const counted =
      backend === undefined
        ? await usage.sumOfMinutes(from, to)
        : await sumOfBackend(engine, backend, { from: from - lateMinutes, to: to - lateMinutes });
    const row = {
      day: dayNumberOf(reading.at),
      generatedTokens: reading.generatedTokens - last.generatedTokens,
      promptTokens: reading.promptTokens - last.promptTokens,
      countedOutputTokens: counted.outputTokens,
      countedInputTokens: counted.inputTokens,
    };
    const sums = reconciledFields.map((field) => row[field]);
    await (backend === undefined ? addDay([[row.day, ...sums]]) : addBackendDay([[row.day, backend, ...sums]]))();
  }

  return {
    add: (reading) =>
      transaction(async () => {
        const { backend } = reading;
        const setting = backend === undefined ? readingSetting : `${readingSetting} ${backend}`;
        await lock("reconciliation");
        const last = await findReading<CounterReading>(setting);
        const ageMs = last === undefined ? Infinity : reading.at - last.at;
        if (ageMs >= 0 && ageMs < minAgeMs) return;
        const isComparable = last !== undefined && ageMs >= 0 && ageMs <= maxAgeMs && !mayHaveRestarted(last, reading);
        if (isComparable) await addSince(last, reading);
        await settings.set(setting, JSON.stringify(reading));
        if (backend === undefined) return;
        await settings.set(latestSetting, JSON.stringify({ source: reading.source, at: reading.at }));
      }),
    days: (sinceDay) => sumDays(engine, sinceDay),
    backendDays: async (sinceDay, limit) =>
      await db
        .select()
        .from(backendTable)
        .where(gte(backendTable.day, sinceDay))
        .orderBy(desc(backendTable.day), backendTable.backend)
        .limit(limit),
    async lastReading() {
      const found = [await findReading<Latest>(readingSetting), await findReading<Latest>(latestSetting)];
      return found.reduce((latest, one) => (one !== undefined && one.at > (latest?.at ?? -Infinity) ? one : latest));
    },
  };
}

type Latest = Pick<CounterReading, "source" | "at">;

async function sumOfBackend(
  { db, tables: { backendMinute: table } }: Engine,
  backend: string,
  { from, to }: { from: number; to: number },
): Promise<Usage> {
  const [sum] = await db
    .select(mapCounters(usageTotals, (field) => sql`coalesce(sum(${table[field]}), 0)`.mapWith(Number)))
    .from(table)
    .where(and(eq(table.backend, backend), gte(table.minute, from), lt(table.minute, to)));
  return sum ?? noUsage;
}

/** Adds up the days of the only backend and of all that have names. */
async function sumDays({ rows, tables }: Engine, sinceDay: number): Promise<ReconciledDay[]> {
  const { reconciliationDay, reconciliationBackendDay } = tables;
  const columns = sql.raw(["day", ...reconciledFields.map(snakeCase)].join(", "));
  const sums = reconciledFields.map(
    (field) => sql`cast(sum(${sql.raw(snakeCase(field))}) as bigint) as ${sql.identifier(field)}`,
  );
  return await rows<ReconciledDay>(
    sql`select day as "day", ${sql.join(sums, sql`, `)} from (
        select ${columns} from ${reconciliationDay} union all select ${columns} from ${reconciliationBackendDay}
      ) as all_days where day >= ${sinceDay} group by 1 order by 1 desc`,
  );
}

/**
 * Then it is not known what the backend generated between the last reading and its restart. Of several behind one address, or
 * of two instances on one database, each backend has counters of its own.
 */
const mayHaveRestarted = (last: CounterReading, now: CounterReading): boolean =>
  now.afterMiss === true ||
  now.source !== last.source ||
  now.startedAt !== last.startedAt ||
  now.generatedTokens < last.generatedTokens ||
  now.promptTokens < last.promptTokens;
