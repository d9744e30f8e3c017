import { type SQL, sql } from "drizzle-orm";
import {
  bucketFloor,
  dayFromNumber,
  dayNumberFrom,
  minuteOf,
  minutesPerHour,
  msPerMinute,
  offsetMinutes,
  timestampOf,
} from "../time/seoul.ts";
import type { KeyId } from "../domain.ts";
import type { Engine } from "./engine.ts";
import { joinSlices, rowsPerSlice } from "./json-slices.ts";
import { safeSum } from "./safe-sum.ts";
import type { BucketRange, UsageStore, UsageSum } from "./store.ts";

interface Row extends UsageSum {
  /** A day number, or the first minute of a bucket. */
  period: number;
  keyId: KeyId;
}

/** The name of a key as JSON. */
type GetKeyName = (keyId: KeyId) => string;

/** The two reports that can be long. They are read in slices on demand, so that no process holds a whole report in memory. */
export function createUsageReports(engine: Engine): Pick<UsageStore, "daily" | "history"> {
  return {
    daily: (sinceDay) => joinSlices(daily(engine, dayNumberFrom(sinceDay))),
    history: (range) => joinSlices(history(engine, range)),
  };
}

async function* daily(engine: Engine, sinceDay: number): AsyncGenerator<string[]> {
  const { rows, tables } = engine;
  const { usageDay } = tables;
  const readNames = createNameReader(engine);
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const within = sql`${usageDay.day} >= ${sinceDay} and ${usageDay.day} < ${before}`;
    const from = await startOfSlice(within);
    if (from === undefined) return;
    const found = await rows<Row>(
      sql`select ${usageDay.day} as "period", ${usageDay.keyId} as "keyId",
        ${usageDay.requestCount} as "requestCount", ${usageDay.inputTokens} as "inputTokens",
        ${usageDay.outputTokens} as "outputTokens"
        from ${usageDay} where ${within} and ${usageDay.day} >= ${from}
        order by ${usageDay.day} desc, ${usageDay.keyId}`,
    );
    const nameOf = await readNames(found);
    yield found.map((row) => `{"date":"${dayFromNumber(row.period)}",${formatUsage(row, nameOf)}}`);
    before = from;
  }

  /** A slice has as many whole days as fit; a day with more rows than a slice is one of its own. */
  async function startOfSlice(within: SQL): Promise<number | undefined> {
    const latestFirst = sql`from ${usageDay} where ${within} order by ${usageDay.day} desc, ${usageDay.keyId} desc limit 1`;
    const [latest] = await rows<{ day: number }>(sql`select ${usageDay.day} as "day" ${latestFirst}`);
    const [beyond] = await rows<{ day: number }>(
      sql`select ${usageDay.day} as "day" ${latestFirst} offset ${rowsPerSlice}`,
    );
    if (latest === undefined || beyond === undefined) return latest && sinceDay;
    return Math.min(beyond.day + 1, latest.day);
  }
}

async function* history(engine: Engine, range: BucketRange): AsyncGenerator<string[]> {
  const readNames = createNameReader(engine);
  let bucket: Row[] = [];
  for await (const sums of sumSlices(engine, range)) {
    const nameOf = await readNames(sums);
    const slice: string[] = [];
    for (const row of sums) {
      if (bucket[0] !== undefined && bucket[0].period !== row.period) {
        slice.push(...formatBucket(bucket, nameOf));
        bucket = [];
      }
      bucket.push(row);
    }
    yield slice;
  }
  yield formatBucket(bucket, await readNames(bucket));
}

/** One point for each key of a bucket. Its rows may come from several slices. */
function formatBucket(bucket: readonly Row[], nameOf: GetKeyName): string[] {
  const [first] = bucket;
  if (first === undefined) return [];
  const start = timestampOf(first.period * msPerMinute);
  const byKey = new Map<KeyId, Row>();
  for (const row of bucket) {
    const sum = byKey.get(row.keyId);
    byKey.set(row.keyId, sum === undefined ? row : addRows(sum, row));
  }
  return [...byKey.values()]
    .toSorted((a, b) => a.keyId - b.keyId)
    .map((row) => `{"bucket_start":"${start}",${formatUsage(row, nameOf)}}`);
}

const addRows = (sum: Row, row: Row): Row => ({
  ...sum,
  requestCount: sum.requestCount + row.requestCount,
  inputTokens: sum.inputTokens + row.inputTokens,
  outputTokens: sum.outputTokens + row.outputTokens,
});

const formatUsage = (row: Row, nameOf: GetKeyName): string =>
  `"key_id":${row.keyId},"key_name":${nameOf(row.keyId)},"request_count":${row.requestCount},` +
  `"input_tokens":${row.inputTokens},"output_tokens":${row.outputTokens}`;

/** Rows summed by bucket and key, oldest first. A bucket may continue in the next slice. */
async function* sumSlices({ rows, tables }: Engine, { since, bucketMinutes }: BucketRange): AsyncGenerator<Row[]> {
  const { usageMinute, usageHour } = tables;
  const [latest] = await rows<{ minute: number | null }>(
    sql`select max(${usageMinute.minute}) as "minute" from ${usageMinute}`,
  );
  if (latest === undefined || latest.minute === null) return;

  for (const { unit, from, to } of listSegments(minuteOf(since), latest.minute + 1, bucketMinutes)) {
    const [table, period] = unit === 1 ? [usageMinute, usageMinute.minute] : [usageHour, usageHour.hour];
    const bucket = sql`(${period} * ${unit} + ${offsetMinutes}) / ${bucketMinutes} * ${bucketMinutes} - ${offsetMinutes}`;
    for (let start = from; start < to;) {
      const [beyond] = await rows<{ period: number }>(
        sql`select ${period} as "period" from ${table} where ${period} >= ${start} and ${period} < ${to}
          order by ${period}, ${table.keyId} limit 1 offset ${rowsPerSlice}`,
      );
      // As many whole minutes or hours as fit; one with more rows than a slice is a slice of its own.
      const end = beyond === undefined ? to : Math.max(beyond.period, start + 1);
      yield await rows<Row>(
        sql`select ${bucket} as "period", ${table.keyId} as "keyId",
          ${safeSum(table.requestCount)} as "requestCount", ${safeSum(table.inputTokens)} as "inputTokens",
          ${safeSum(table.outputTokens)} as "outputTokens"
          from ${table} where ${period} >= ${start} and ${period} < ${end} group by 1, 2 order by 1, 2`,
      );
      start = end;
    }
  }
}

interface Segment {
  /** Minutes per row. */
  unit: 1 | typeof minutesPerHour;
  /** In units since the epoch; the end is exclusive. */
  from: number;
  to: number;
}

/** Which table to read for each part of a window: hours that lie within the window and one bucket, minutes for the rest. */
export function listSegments(fromMinute: number, toMinute: number, bucketMinutes: number): Segment[] {
  const segments: Segment[] = [];
  const firstHour = Math.floor(fromMinute / minutesPerHour);
  for (let hour = firstHour; hour * minutesPerHour < toMinute; hour++) {
    const first = hour * minutesPerHour;
    const next = first + minutesPerHour;
    const fits = first >= fromMinute && bucketFloor(first, bucketMinutes) === bucketFloor(next - 1, bucketMinutes);
    const part: Segment = fits
      ? { unit: minutesPerHour, from: hour, to: hour + 1 }
      : { unit: 1, from: Math.max(first, fromMinute), to: Math.min(next, toMinute) };
    const last = segments.at(-1);
    if (last?.unit === part.unit) last.to = part.to;
    else segments.push(part);
  }
  return segments;
}

/** Reads all names once per report, and again only if a row has a newer key. A deleted key has its last name. */
function createNameReader({
  db,
  tables: { keys, deletedKeys },
}: Engine): (rows: readonly Row[]) => Promise<GetKeyName> {
  let names = new Map<KeyId, string>();
  return async (found) => {
    if (found.some(({ keyId }) => !names.has(keyId))) {
      const deleted = await db.select({ id: deletedKeys.id, name: deletedKeys.name }).from(deletedKeys);
      const existing = await db.select({ id: keys.id, name: keys.name }).from(keys);
      names = new Map([...deleted, ...existing].map(({ id, name }) => [id, JSON.stringify(name)]));
    }
    return (keyId) => names.get(keyId) ?? '""';
  };
}
