import { and, asc, desc, eq, gte, lt, ne, type SQL, sql } from "drizzle-orm";
import type { KeyId } from "../domain.ts";
import { addEncoded, encodeHistogram } from "../histogram.ts";
import { bucketFloor, minutesPerHour, offsetMinutes } from "../time/seoul.ts";
import type { Engine } from "./engine.ts";
import { safeSum } from "./safe-sum.ts";
import type {
  LatencyFilter,
  ModelUsage,
  ModelUsageQuery,
  OutcomeSums,
  StoredLatency,
  TrafficRange,
  TrafficStore,
} from "./traffic-store.ts";

type Reads = Pick<TrafficStore, "modelUsage" | "latencies" | "outcomes" | "tokenless">;

export function createTrafficReads(engine: Engine): Reads {
  return {
    modelUsage: (query) => sumModels(engine, query),
    latencies: (range, filter) => listLatencies(engine, range, filter),
    outcomes: (range, limit, keyId) => sumOutcomes(engine, range, limit, keyId),
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

async function listLatencies(
  { db, tables }: Engine,
  range: TrafficRange,
  { allModels = false, model }: LatencyFilter = {},
): Promise<StoredLatency[]> {
  const { latencyMinute, latencyHour } = tables;
  const table = range.byHour ? latencyHour : latencyMinute;
  const period = range.byHour ? latencyHour.hour : latencyMinute.minute;
  const found = await db
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
  return addUp(found, range.bucketMinutes, allModels);
}

/** Here and not by the caller: with SQLite this is the thread of the database, and only the sums leave it. */
function addUp(rows: readonly StoredLatency[], bucketMinutes: number, allModels: boolean): StoredLatency[] {
  const sums = new Map<string, ReturnType<typeof emptySum>>();
  for (const row of rows) {
    const minute = bucketFloor(row.minute, bucketMinutes);
    const model = allModels ? "" : row.model;
    const id = `${minute} ${model}`;
    const sum = sums.get(id) ?? emptySum(minute, model);
    sums.set(id, sum);
    sum.requestCount += row.requestCount;
    addEncoded(sum.firstByte, row.firstByte);
    addEncoded(sum.duration, row.duration);
    addEncoded(sum.tokensPerSecond, row.tokensPerSecond);
  }
  return Array.from(sums.values(), (sum) => ({
    ...sum,
    firstByte: encodeHistogram(sum.firstByte),
    duration: encodeHistogram(sum.duration),
    tokensPerSecond: encodeHistogram(sum.tokensPerSecond),
  }));
}

const emptySum = (minute: number, model: string) => ({
  minute,
  model,
  requestCount: 0,
  firstByte: new Map<number, number>(),
  duration: new Map<number, number>(),
  tokensPerSecond: new Map<number, number>(),
});

async function sumOutcomes(
  { db, tables }: Engine,
  range: TrafficRange,
  limit: number,
  keyId: KeyId | undefined,
): Promise<OutcomeSums> {
  const { outcomeMinute, outcomeHour } = tables;
  const table = range.byHour ? outcomeHour : outcomeMinute;
  const period = range.byHour ? outcomeHour.hour : outcomeMinute.minute;
  const { outcome, code } = table;
  const isMeant = and(isWithin(period, range), keyId === undefined ? undefined : eq(table.keyId, keyId));
  const points = await db
    .select({
      minute: bucketOf(period, range).mapWith(Number),
      outcome,
      count: sumOf(table.count),
      failedCount: sumOf(sql`case when ${code} = '' then 0 else ${table.count} end`),
    })
    .from(table)
    .where(isMeant)
    .groupBy(sql`1`, outcome)
    .orderBy(sql`1`, outcome);
  const failures = await db
    .select({
      minute: sql<number>`0`.mapWith(Number),
      keyId: table.keyId,
      outcome,
      code,
      count: sumOf(table.count),
      lastAt: sql<number>`max(${table.lastAt})`.mapWith(Number),
    })
    .from(table)
    .where(and(isMeant, ne(code, "")))
    .groupBy(table.keyId, outcome, code)
    .orderBy(desc(safeSum(table.count)), desc(sql`max(${table.lastAt})`))
    .limit(limit);
  return { points, failures };
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

const unitOf = ({ byHour }: Pick<TrafficRange, "byHour">): number => (byHour ? minutesPerHour : 1);

/** The first minute of a minute or an hour. */
const minuteOfPeriod = (period: Column, range: TrafficRange): SQL<number> =>
  sql<number>`${period} * ${sql.raw(String(unitOf(range)))}`.mapWith(Number);

const bucketOf = (period: Column, { bucketMinutes, ...range }: TrafficRange): SQL<number> => {
  const length = sql.raw(String(bucketMinutes));
  const offset = sql.raw(String(offsetMinutes));
  return sql`(${period} * ${sql.raw(String(unitOf(range)))} + ${offset}) / ${length} * ${length} - ${offset}`;
};

const isWithin = (period: Column, range: TrafficRange): SQL =>
  sql`${period} >= ${Math.floor(range.from / unitOf(range))} and ${period} < ${Math.ceil(range.to / unitOf(range))}`;
