import { and, eq, is, type SQL, sql } from "drizzle-orm";
import { SQLiteColumn } from "drizzle-orm/sqlite-core";
import { Histogram, type LatencyHistogram, latencyHistograms } from "../../domain/histogram.ts";
import { mapCounters } from "../../domain/usage.ts";
import { type Engine, safeSum } from "../engine/engine.ts";
import type { LatencyFilter, StoredLatency, TrafficRange } from "./contract.ts";
import { bucketFloor, minutesPerHour } from "../../time/seoul.ts";

/** One minute or one hour. */
type LatencyRow = Omit<StoredLatency, "minute"> & {
  period: number;
  /** The histograms are those of so many models, one after the other. */
  models: number;
};

export async function listLatencies(
  { rows, tables: { latencyMinute, latencyHour } }: Engine,
  range: TrafficRange,
  { allModels = false, model }: LatencyFilter = {},
): Promise<StoredLatency[]> {
  const table = range.byHour ? latencyHour : latencyMinute;
  const period = range.byHour ? sql`${latencyHour.hour}` : sql`${latencyMinute.minute}`;
  const histogramsBy = (select: (column: SQLiteColumn) => SQL): SQL =>
    sql.join(
      latencyHistograms.map((name) => sql`${select(table[name])} as ${sql.identifier(name)}`),
      sql`, `,
    );
  const where = and(isWithin(period, range), model === undefined ? undefined : eq(table.model, model));
  const found = await rows<LatencyRow>(
    allModels
      ? sql`select ${period} as "period", '' as "model", count(*) as "models", ${safeSum(table.requestCount)} as "requestCount",
          ${histogramsBy(joined)}
          from ${table} where ${where} group by 1 order by 1`
      : sql`select ${period} as "period", ${table.model} as "model", 1 as "models", ${table.requestCount} as "requestCount",
          ${histogramsBy((column) => sql`${column}`)}
          from ${table} where ${where} order by 1, 2`,
    ["model", ...latencyHistograms],
  );
  return addUp(found, range);
}

/** PostgreSQL's function is in SQLite since 3.44, and macOS brings older ones. */
const joined = (column: SQLiteColumn): SQL =>
  is(column, SQLiteColumn) ? sql`group_concat(${column}, ' ')` : sql`string_agg(${column}, ' ')`;

/**
 * Adds up the rows of each bucket and model. Here and not by the caller: with SQLite this is the thread of the database, and
 * only the sums leave it.
 */
function addUp(rows: readonly LatencyRow[], range: TrafficRange): StoredLatency[] {
  const merge = createMerge();
  const sums: StoredLatency[] = [];
  for (const [minute, found] of Map.groupBy(rows, ({ period }) => bucketOf(period, range))) {
    for (const [model, parts] of Map.groupBy(found, (row) => row.model)) {
      sums.push({
        minute,
        model,
        requestCount: parts.reduce((sum, { requestCount }) => sum + requestCount, 0),
        ...mapCounters(latencyHistograms, (name) => merge(parts, name)),
      });
    }
  }
  return sums;
}

function createMerge() {
  const sum = new Histogram();
  return (parts: readonly LatencyRow[], name: LatencyHistogram): string => {
    const [first] = parts;
    if (parts.length === 1 && first?.models === 1) return first[name];
    sum.clear();
    for (const part of parts) sum.addText(part[name]);
    return sum.toText();
  };
}

// Rows of traffic are of a minute or of an hour, whichever the range asks for.

const unitOf = ({ byHour }: TrafficRange): number => (byHour ? minutesPerHour : 1);

export const isWithin = (period: SQL, range: TrafficRange): SQL =>
  sql`${period} >= ${Math.floor(range.from / unitOf(range))} and ${period} < ${Math.ceil(range.to / unitOf(range))}`;

/** The first minute of the bucket that a minute or an hour belongs to. */
export const bucketOf = (period: number, range: TrafficRange): number =>
  bucketFloor(period * unitOf(range), range.bucketMinutes);
