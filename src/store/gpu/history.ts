import { type SQL, sql } from "drizzle-orm";
import { bucketFloor, minuteOf, minutesPerHour, msPerMinute, offsetMinutes, timestampOf } from "../../time/seoul.ts";
import { type Engine, rowsPerSlice } from "../engine/engine.ts";
import { measures, sumColumns } from "./minutes-and-hours.ts";
import type { BucketRange } from "../reports/contract.ts";
import { listSegments } from "../reports/slices.ts";

/** Points of `GET /api/gpu-stats/power-history`. */
export async function* powerSlices(engine: Engine, range: BucketRange): AsyncGenerator<string[]> {
  const { powerDrawW } = engine.tables.gpuPowerMinute;
  const slices = bucketSlices<{ bucket: number; powerDrawW: number }>(engine, range, {
    columns: sql`max(${powerDrawW}) as "powerDrawW"`,
  });
  for await (const points of slices) {
    yield points.map((point) => `{"recorded_at":"${startOf(point.bucket)}","power_draw_w":${point.powerDrawW}}`);
  }
}

/** The total of all GPUs: each minute counts with the sum of the GPUs' means, and minutes without a reading do not count. */
export async function* totalSlices(engine: Engine, range: BucketRange): AsyncGenerator<string[]> {
  const { meanPowerDrawW } = engine.tables.gpuPowerMinute;
  const slices = bucketSlices<{ bucket: number; sum: number; count: number }>(engine, range, {
    columns: sql`sum(${meanPowerDrawW}) as "sum", count(${meanPowerDrawW}) as "count"`,
    where: sql`${meanPowerDrawW} is not null`,
  });
  for await (const points of slices) {
    yield points.map(({ bucket, sum, count }) => `{${formatPower(bucket, sum, count)}}`);
  }
}

const startOf = (bucket: number): string => timestampOf(bucket * msPerMinute);

const formatPower = (bucket: number, sum: number, minutes: number): string =>
  `"bucket_start":"${startOf(bucket)}","measured_minutes":${minutes},` +
  `"power_draw_w":${formatMean(sum, minutes)},"energy_wh":${minutes === 0 ? null : rounded(sum / 60)}`;

const formatMean = (sum: number, count: number): number | null => (count === 0 ? null : rounded(sum / count));

/** Shortens the digits of a quotient without losing what a sensor can tell. */
const rounded = (value: number): number => Math.round(value * 1000) / 1000;

const bucketOf = (minute: SQL, bucketMinutes: number): SQL =>
  sql`(${minute} + ${offsetMinutes}) / ${bucketMinutes} * ${bucketMinutes} - ${offsetMinutes}`;

/** Whole buckets of the table of all GPUs. */
async function* bucketSlices<Row extends { bucket: number }>(
  { rows, tables: { gpuPowerMinute } }: Engine,
  { since, bucketMinutes }: BucketRange,
  { columns, where = sql`true` }: { columns: SQL; where?: SQL },
): AsyncGenerator<Row[]> {
  const { minute } = gpuPowerMinute;
  const [window] = await rows<{ first: number | null; last: number | null }>(
    sql`select min(${minute}) as "first", max(${minute}) as "last" from ${gpuPowerMinute}
      where ${minute} >= ${minuteOf(since)}`,
  );
  if (window === undefined || window.first === null || window.last === null) return;

  const minutesPerSlice = Math.ceil(rowsPerSlice / bucketMinutes) * bucketMinutes;
  for (let start = bucketFloor(window.first, bucketMinutes); start <= window.last; start += minutesPerSlice) {
    yield await rows<Row & Record<keyof Row, number>>(
      sql`select ${bucketOf(sql`${minute}`, bucketMinutes)} as "bucket", ${columns} from ${gpuPowerMinute}
        where ${minute} >= ${Math.max(start, window.first)} and ${minute} < ${start + minutesPerSlice} and ${where}
        group by 1 order by 1`,
    );
  }
}

type MeasureName = (typeof measures)[number]["name"];

/** A part of a bucket, or a whole one. */
type Sums = Record<"bucket" | `${MeasureName}${"Sum" | "Count"}`, number> &
  Record<`${MeasureName}${"Max" | "Last"}`, number | null>;

/** One GPU. Whole hours come from their own table: 720 of them take a millisecond or two, their minutes a hundred. */
export async function* gpuSlices(
  engine: Engine,
  range: BucketRange,
  gpuId: number,
  nowMs: number,
): AsyncGenerator<string[]> {
  let open: Sums | undefined;
  for await (const sums of sumSlices(engine, range, gpuId, nowMs)) {
    const slice: string[] = [];
    for (const part of sums) {
      if (open !== undefined && open.bucket !== part.bucket) slice.push(formatSums(open));
      open = open?.bucket === part.bucket ? mergeSums(open, part) : part;
    }
    yield slice;
  }
  if (open !== undefined) yield [formatSums(open)];
}

/** Sums by bucket, oldest first. A bucket may continue in the next slice. */
async function* sumSlices(
  engine: Engine,
  { since, bucketMinutes }: BucketRange,
  gpuId: number,
  nowMs: number,
): AsyncGenerator<Sums[]> {
  const { rows, tables } = engine;
  const { gpuMinute, gpuHour } = tables;
  const [window] = await rows<Record<"first" | "firstHour" | "last" | "hour", number | null>>(
    sql`select (select min(${gpuMinute.minute}) from ${gpuMinute} where ${gpuMinute.minute} >= ${minuteOf(since)}) as "first",
      (select min(${gpuHour.hour}) from ${gpuHour} where ${gpuHour.hour} >= ${Math.ceil(minuteOf(since) / minutesPerHour)}) as "firstHour",
      (select max(${gpuMinute.minute}) from ${gpuMinute} where ${gpuMinute.minute} <= ${minuteOf(nowMs)}) as "last",
      (select max(${gpuHour.hour}) from ${gpuHour} where ${gpuHour.hour} < ${Math.floor(minuteOf(nowMs) / minutesPerHour)}) as "hour"`,
  );
  if (window === undefined || window.first === null || window.last === null) return;

  const first = Math.min(window.first, (window.firstHour ?? Infinity) * minutesPerHour);
  const rolledUpTo = ((window.hour ?? -1) + 1) * minutesPerHour;
  const segments = [
    ...listSegments(first, Math.min(rolledUpTo, window.last + 1), bucketMinutes, [minutesPerHour]),
    { unit: 1, from: Math.max(rolledUpTo, first), to: window.last + 1 },
  ];
  for (const { unit, from, to } of segments) {
    for (let start = from; start < to; start += rowsPerSlice) {
      const end = Math.min(start + rowsPerSlice, to);
      yield await rows<Sums>(unit === 1 ? sumsOf("minute", { start, end }) : sumsOf("hour", { start, end }));
    }
  }

  /** Looks each period up by its primary key, since the rows of the other GPUs are in between. */
  function sumsOf(unit: "minute" | "hour", { start, end }: { start: number; end: number }): SQL {
    const [table, period] = unit === "minute" ? [gpuMinute, gpuMinute.minute] : [gpuHour, gpuHour.hour];
    const minute = unit === "minute" ? sql`${period}` : sql`${period} * ${minutesPerHour}`;
    const last = measures.map(({ name }) => sql.raw(`final.${name}_last as "${name}Last"`));
    return sql`with recursive step(period) as
        (select cast(${start} as bigint) union all select period + 1 from step where period + 1 < ${end})
      select sums.*, ${sql.join(last, sql`, `)}
      from (select ${bucketOf(minute, bucketMinutes)} as "bucket", max(${period}) as last_period,
          ${sumColumns(table, unit === "minute")}
        from step join ${table} on ${period} = step.period and ${table.gpuId} = ${gpuId} group by 1) sums
      join ${table} final on final.${sql.raw(unit)} = sums.last_period and final.gpu_id = ${gpuId}
      order by 1`;
  }
}

function mergeSums(sums: Sums, later: Sums): Sums {
  const merged = { ...later };
  for (const { name } of measures) {
    merged[`${name}Sum`] += sums[`${name}Sum`];
    merged[`${name}Count`] += sums[`${name}Count`];
    const [max, laterMax] = [sums[`${name}Max`], later[`${name}Max`]];
    merged[`${name}Max`] = max === null || laterMax === null ? (max ?? laterMax) : Math.max(max, laterMax);
    merged[`${name}Last`] = later[`${name}Last`] ?? sums[`${name}Last`];
  }
  return merged;
}

function formatSums(sums: Sums): string {
  const fields = measures.map(({ name, column }) => {
    const extremes = `"${column}_max":${sums[`${name}Max`]},"${column}_last":${sums[`${name}Last`]}`;
    if (name === "power") return extremes;
    return `"${column}":${formatMean(sums[`${name}Sum`], sums[`${name}Count`])},${extremes}`;
  });
  return `{${formatPower(sums.bucket, sums.powerSum, sums.powerCount)},${fields.join(",")}}`;
}
