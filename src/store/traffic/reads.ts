import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import { sumBackends } from "./backends.ts";
import { listLatencies } from "./latency-reads.ts";
import { sumOutcomes } from "./outcome-reads.ts";
import { countedFields } from "../../domain/usage.ts";
import { safeSum } from "../engine/safe-sum.ts";
import type { ModelUsage, ModelUsageQuery, StoredTokenless, TokenlessSums, TrafficStore } from "./contract.ts";

type Reads = Pick<TrafficStore, "modelUsage" | "latencies" | "outcomes" | "tokenless" | "backends">;

export function createTrafficReads(engine: Engine): Reads {
  return {
    modelUsage: (query) => sumModels(engine, query),
    latencies: (range, filter) => listLatencies(engine, range, filter),
    outcomes: (range, limit, keyId) => sumOutcomes(engine, range, limit, keyId),
    backends: (from, to) => sumBackends(engine, from, to),
    tokenless: (sinceHour, limit) => sumTokenless(engine, sinceHour, limit),
  };
}

async function sumModels({ rows, tables }: Engine, query: ModelUsageQuery): Promise<ModelUsage[]> {
  const { unit, from, to, groupBy, keyId, model, latestFirst = false, limit } = query;
  const { usageModelDay, usageModelHour, usageModelMonth } = tables;
  const { table, period } = {
    hour: { table: usageModelHour, period: usageModelHour.hour },
    day: { table: usageModelDay, period: usageModelDay.day },
    month: { table: usageModelMonth, period: usageModelMonth.month },
  }[unit];
  const groups = [
    ...(groupBy.period ? [period] : []),
    ...(groupBy.key ? [table.keyId] : []),
    ...(groupBy.model ? [table.model] : []),
  ];
  const where = and(
    gte(period, from),
    lt(period, to),
    keyId === undefined ? undefined : eq(table.keyId, keyId),
    model === undefined ? undefined : eq(table.model, model),
  );
  const tokens = countedFields.map((field) => sql`${sumOf(table[field])} as ${sql.identifier(field)}`);
  return await rows<ModelUsage>(
    sql`select ${groupBy.period ? period : sql`0`} as "period", ${groupBy.key ? table.keyId : sql`0`} as "keyId",
      ${groupBy.model ? table.model : sql`''`} as "model", ${sumOf(table.requestCount)} as "requestCount",
      ${sql.join(tokens, sql`, `)}
      from ${table} where ${where} group by ${sql.join(groups, sql`, `)}
      order by ${latestFirst ? sql`${period} desc, ` : sql``}
        ${safeSum(table.inputTokens)} + ${safeSum(table.outputTokens)} desc, ${sql.join(groups, sql`, `)}
      limit ${limit}`,
    ["model"],
  );
}

async function sumTokenless(
  { rows, tables: { tokenlessHour } }: Engine,
  sinceHour: number,
  limit: number,
): Promise<TokenlessSums> {
  const { hour, keyId, model, path, requestCount, streamedCount } = tokenlessHour;
  const sums = sql`${sumOf(requestCount)} as "requestCount", ${sumOf(streamedCount)} as "streamedCount"`;
  const since = sql`from ${tokenlessHour} where ${hour} >= ${sinceHour}`;
  const most = await rows<StoredTokenless>(
    sql`select min(${hour}) as "hour", ${keyId} as "keyId", ${model} as "model", ${path} as "path", ${sums}
      ${since} group by ${keyId}, ${model}, ${path}
      order by ${safeSum(requestCount)} desc, ${keyId}, ${model}, ${path} limit ${limit}`,
    ["model", "path"],
  );
  // Not of the rows above: a limit cuts them off.
  const [total] = await rows<Omit<TokenlessSums, "most">>(sql`select ${sums} ${since}`);
  return { requestCount: total?.requestCount ?? 0, streamedCount: total?.streamedCount ?? 0, most };
}

const sumOf = (column: Parameters<typeof safeSum>[0]): SQL => sql`coalesce(${safeSum(column)}, 0)`;
