import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { bucketFloor, minutesPerDay, minutesPerHour, offsetMinutes } from "../../time/seoul.ts";
import { type Engine, rowsPerSlice, safeSum } from "../engine/engine.ts";
import type { KeyCondition } from "./key-filter.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { UsageSum } from "../../domain/usage.ts";

export interface UsageRow extends UsageSum {
  /** A day number, or the first minute of a bucket. */
  period: number;
  keyId: KeyId;
}

/** Which keys to sum, and how. */
interface SumOptions {
  /** By default all keys. */
  condition?: KeyCondition;
  /** Sums all other keys as one, with the id 0. By default, no keys are summed together. */
  apart?: readonly KeyId[];
  /** Rows of a table in one slice. */
  sliceRows?: number;
}

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
export async function* sumSlices(
  engine: Engine,
  { from, to }: MinuteRange,
  bucketMinutes: number,
  { condition, apart, sliceRows = rowsPerSlice }: SumOptions = {},
): AsyncGenerator<UsageRow[]> {
  const { rows } = engine;
  for (const { unit, from: first, to: beyondLast } of listSegments(from, to, bucketMinutes)) {
    const { table, period } = tableOf(engine, unit);
    const localMinute = sql`(${period} * ${unit} + ${offsetMinutes - alignmentOf(unit)})`;
    const bucket = sql`${localMinute} / ${bucketMinutes} * ${bucketMinutes} - ${offsetMinutes}`;
    // The days have teams too.
    const included = sql`${table.keyId} > 0 and ${condition?.(table.keyId) ?? sql`1 = 1`}`;
    const key = apart === undefined ? sql`${table.keyId}` : keyApart(table.keyId, apart);
    for (let start = first; start < beyondLast;) {
      const [beyond] = await rows<{ period: number }>(
        sql`select ${period} as "period" from ${table} where ${period} >= ${start} and ${period} < ${beyondLast}
          order by ${period}, ${table.keyId} limit 1 offset ${sliceRows}`,
      );
      // A slice has as many whole minutes, hours or days as fit; one with more rows than a slice is a slice of its own.
      const end = beyond === undefined ? beyondLast : Math.max(beyond.period, start + 1);
      yield await rows<UsageRow>(
        sql`select ${bucket} as "period", ${key} as "keyId",
          ${safeSum(table.requestCount)} as "requestCount", ${safeSum(table.inputTokens)} as "inputTokens",
          ${safeSum(table.outputTokens)} as "outputTokens"
          from ${table} where ${period} >= ${start} and ${period} < ${end} and ${included}
          group by 1, 2 order by 1, 2`,
      );
      start = end;
    }
  }
}

const keyApart = (column: SQLWrapper, apart: readonly KeyId[]): SQL =>
  apart.length === 0 ? sql`0` : sql`case when ${column} in ${apart} then ${column} else 0 end`;

function tableOf(
  { tables: { usageDay, usageHour, usageMinute } }: Engine,
  unit: number,
): { table: Engine["tables"]["usageDay" | "usageHour" | "usageMinute"]; period: SQL } {
  if (unit === minutesPerDay) return { table: usageDay, period: sql`${usageDay.day}` };
  if (unit === minutesPerHour) return { table: usageHour, period: sql`${usageHour.hour}` };
  return { table: usageMinute, period: sql`${usageMinute.minute}` };
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
