import { and, asc, desc, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import type { KeyId } from "../domain.ts";
import { minutesPerHour } from "../time/seoul.ts";
import type { Engine } from "./engine.ts";
import { safeSum } from "./safe-sum.ts";
import type { ModelUsage, ModelUsageQuery, TrafficRange, TrafficStore } from "./traffic-store.ts";

type Reads = Pick<TrafficStore, "modelUsage" | "latencies" | "outcomes" | "tokenless">;

export function createTrafficReads(engine: Engine): Reads {
  return {
    modelUsage: (query) => sumModels(engine, query),
    latencies: (range, model) => listLatencies(engine, range, model),
    outcomes: (range, keyId) => listOutcomes(engine, range, keyId),
    tokenless: (sinceHour, limit) => sumTokenless(engine, sinceHour, limit),
  };
}

async function sumModels({ db, tables }: Engine, query: ModelUsageQuery): Promise<ModelUsage[]> {
  const { unit, from, to, groupBy, keyId, model, limit } = query;
  const { usageModelDay, usageModelHour } = tables;
  const table = unit === "day" ? usageModelDay : usageModelHour;
  const period = unit === "day" ? usageModelDay.day : usageModelHour.hour;
  const tokens = sql`${safeSum(table.inputTokens)} + ${safeSum(table.outputTokens)}`;
  const groups = [
    ...(groupBy.period ? [period] : []),
    ...(groupBy.key ? [table.keyId] : []),
    ...(groupBy.model ? [table.model] : []),
  ];
  return await db
    .select({
      period: groupBy.period ? sql<number>`${period}`.mapWith(Number) : sql<number>`0`.mapWith(Number),
      keyId: groupBy.key ? sql<number>`${table.keyId}`.mapWith(Number) : sql<number>`0`.mapWith(Number),
      model: groupBy.model ? sql<string>`${table.model}` : sql<string>`''`,
      requestCount: sumOf(table.requestCount),
      inputTokens: sumOf(table.inputTokens),
      cachedInputTokens: sumOf(table.cachedInputTokens),
      cachedBesideInputTokens: sumOf(table.cachedBesideInputTokens),
      outputTokens: sumOf(table.outputTokens),
      reasoningTokens: sumOf(table.reasoningTokens),
    })
    .from(table)
    .where(
      and(
        gte(period, from),
        lt(period, to),
        keyId === undefined ? undefined : eq(table.keyId, keyId),
        model === undefined ? undefined : eq(table.model, model),
      ),
    )
    .groupBy(...groups)
    .orderBy(desc(tokens), ...groups)
    .limit(limit);
}

async function listLatencies({ db, tables }: Engine, range: TrafficRange, model: string | undefined) {
  const { latencyMinute, latencyHour } = tables;
  const table = range.byHour ? latencyHour : latencyMinute;
  const period = range.byHour ? latencyHour.hour : latencyMinute.minute;
  return await db
    .select({
      minute: minuteOfPeriod(period, range),
      model: table.model,
      requestCount: table.requestCount,
      firstByte: table.firstByte,
      duration: table.duration,
      tokensPerSecond: table.tokensPerSecond,
    })
    .from(table)
    .where(and(isWithin(period, range), model === undefined ? undefined : eq(table.model, model)))
    .orderBy(asc(period), asc(table.model));
}

async function listOutcomes({ db, tables }: Engine, range: TrafficRange, keyId: KeyId | undefined) {
  const { outcomeMinute, outcomeHour } = tables;
  const table = range.byHour ? outcomeHour : outcomeMinute;
  const period = range.byHour ? outcomeHour.hour : outcomeMinute.minute;
  return await db
    .select({
      minute: minuteOfPeriod(period, range),
      keyId: table.keyId,
      outcome: table.outcome,
      code: table.code,
      count: table.count,
      lastAt: table.lastAt,
    })
    .from(table)
    .where(and(isWithin(period, range), keyId === undefined ? undefined : eq(table.keyId, keyId)))
    .orderBy(asc(period), asc(table.keyId), asc(table.outcome), asc(table.code));
}

async function sumTokenless({ db, tables: { tokenlessHour } }: Engine, sinceHour: number, limit: number) {
  const { hour, keyId, model, path, requestCount, streamedCount } = tokenlessHour;
  return await db
    .select({
      hour: sql<number>`min(${hour})`.mapWith(Number),
      keyId,
      model,
      path,
      requestCount: sumOf(requestCount),
      streamedCount: sumOf(streamedCount),
    })
    .from(tokenlessHour)
    .where(gte(hour, sinceHour))
    .groupBy(keyId, model, path)
    .orderBy(desc(safeSum(requestCount)), keyId, model, path)
    .limit(limit);
}

type Column = Parameters<typeof safeSum>[0];

const sumOf = (column: Column): SQL<number> => sql<number>`coalesce(${safeSum(column)}, 0)`.mapWith(Number);

const unitOf = ({ byHour }: TrafficRange): number => (byHour ? minutesPerHour : 1);

/** The first minute of a minute or an hour. */
const minuteOfPeriod = (period: Column, range: TrafficRange): SQL<number> =>
  sql<number>`${period} * ${sql.raw(String(unitOf(range)))}`.mapWith(Number);

const isWithin = (period: Column, range: TrafficRange): SQL =>
  sql`${period} >= ${Math.floor(range.from / unitOf(range))} and ${period} < ${Math.ceil(range.to / unitOf(range))}`;
