import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { bucketFloor, minutesPerDay, minutesPerHour, offsetMinutes } from "../../time/seoul.ts";
import { type Engine, rowsPerSlice, safeSum } from "../engine/engine.ts";
import type { GroupId } from "./contract.ts";
import type { FilteredColumns, UsageCondition } from "./key-filter.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { UsageSum } from "../../domain/usage.ts";

export interface UsageRow<Id = KeyId> extends UsageSum {
  /** A day number, or the first minute of a bucket. */
  period: number;
  keyId: Id;
}

/** What to sum, and how. */
interface SumOptions<Id> {
  /** By default all usage. */
  condition?: UsageCondition;
  /** Which column is the id of a row. Where it is not the key's, and for its filters, there are days and hours alone. */
  column?: GroupColumn;
  byModel?: boolean;
  /** Sums all others as one, whose id is null. By default, none are summed together. */
  apart?: readonly Id[];
  /** Rows of a table in one slice. Few keep memory small: up to a hundred slices wait for a full collection (Bun 1.4.5). */
  sliceRows?: number;
}

export type GroupColumn = "keyId" | "teamId" | "userId" | "model";

/** More than for a report that lists every row, because only sums leave the database. */
export const summedRowsPerSlice = 3 * rowsPerSlice;

/** Minutes since the epoch; the end is exclusive. */
export interface MinuteRange {
  from: number;
  to: number;
}

/** Wider than any range, so that all of it is one bucket. */
export const oneBucket = 2 ** 40;

/** Rows summed by bucket and key, oldest first. A bucket may continue in the next slice. */
export async function* sumSlices<Id extends GroupId = KeyId>(
  engine: Engine,
  { from, to }: MinuteRange,
  bucketMinutes: number,
  { condition, column = "keyId", byModel = false, apart, sliceRows = rowsPerSlice / 2 }: SumOptions<Id> = {},
): AsyncGenerator<UsageRow<Id>[]> {
  const { rows } = engine;
  const read = (query: SQL): Promise<UsageRow<GroupId>[]> =>
    column === "model" ? rows<UsageRow<string>>(query, ["keyId"]) : rows<UsageRow>(query);
  for (const { unit, from: first, to: beyondLast } of listSegments(from, to, bucketMinutes)) {
    const { table, period } = tableOf(engine, unit, byModel);
    const columns: FilteredColumns = table;
    const localMinute = sql`(${period} * ${unit} + ${offsetMinutes - alignmentOf(unit)})`;
    const bucket = sql`${localMinute} / ${bucketMinutes} * ${bucketMinutes} - ${offsetMinutes}`;
    // The days have teams too.
    const included = sql`${table.keyId} > 0 and ${condition?.(columns) ?? sql`1 = 1`}`;
    const id = columns[column] ?? table.keyId;
    const key = apart === undefined ? sql`${id}` : idApart(id, apart);
    for (let start = first; start < beyondLast;) {
      const [beyond] = await rows<{ period: number }>(
        sql`select ${period} as "period" from ${table} where ${period} >= ${start} and ${period} < ${beyondLast}
          order by ${period}, ${table.keyId} limit 1 offset ${sliceRows}`,
      );
      // A slice has as many whole minutes, hours or days as fit; one with more rows than a slice is a slice of its own.
      const end = beyond === undefined ? beyondLast : Math.max(beyond.period, start + 1);
      const found = await read(
        sql`select ${bucket} as "period", ${key} as "keyId",
          ${safeSum(table.requestCount)} as "requestCount", ${safeSum(table.inputTokens)} as "inputTokens",
          ${safeSum(table.outputTokens)} as "outputTokens"
          from ${table} where ${period} >= ${start} and ${period} < ${end} and ${included}
          group by 1, 2 order by 1, 2`,
      );
      yield found as UsageRow<Id>[];
      start = end;
    }
  }
}

const idApart = (column: SQLWrapper, apart: readonly GroupId[]): SQL =>
  apart.length === 0 ? sql`cast(null as bigint)` : sql`case when ${column} in ${apart} then ${column} end`;

function tableOf({ tables }: Engine, unit: number, byModel: boolean) {
  const { usageDay, usageHour, usageMinute, usageModelDay, usageModelHour } = tables;
  if (unit === minutesPerDay) {
    const table = byModel ? usageModelDay : usageDay;
    return { table, period: sql`${table.day}` };
  }
  if (unit !== minutesPerHour) return { table: usageMinute, period: sql`${usageMinute.minute}` };
  const table = byModel ? usageModelHour : usageHour;
  return { table, period: sql`${table.hour}` };
}

/** What to add to a minute before dividing it by the unit: days are Seoul's. */
const alignmentOf = (unit: number): number => (unit === minutesPerDay ? offsetMinutes : 0);

interface Segment {
  /** Minutes per row. */
  unit: number;
  /** In units since the epoch; the end is exclusive. */
  from: number;
  to: number;
}

/**
 * Which table to read for each part of a range: days or hours that lie within it and one bucket, minutes for the rest.
 * @param units of the tables besides minutes, largest first
 */
export function listSegments(
  fromMinute: number,
  toMinute: number,
  bucketMinutes: number,
  units: readonly number[] = [minutesPerDay, minutesPerHour],
): Segment[] {
  const segments: Segment[] = [];
  for (let minute = fromMinute; minute < toMinute;) {
    const unit = largestUnit(minute, toMinute, bucketMinutes, units);
    const next = unit === 1 ? Math.min(nextHour(minute), toMinute) : minute + unit;
    const periodOf = (at: number): number => (at + alignmentOf(unit)) / unit;
    const last = segments.at(-1);
    if (last?.unit === unit) last.to = periodOf(next);
    else segments.push({ unit, from: periodOf(minute), to: periodOf(next) });
    minute = next;
  }
  return segments;
}

function largestUnit(minute: number, toMinute: number, bucketMinutes: number, units: readonly number[]): number {
  const fits = (unit: number): boolean =>
    (minute + alignmentOf(unit)) % unit === 0 &&
    minute + unit <= toMinute &&
    bucketFloor(minute, bucketMinutes) === bucketFloor(minute + unit - 1, bucketMinutes);
  return units.find(fits) ?? 1;
}

const nextHour = (minute: number): number => (Math.floor(minute / minutesPerHour) + 1) * minutesPerHour;
