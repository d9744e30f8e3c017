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
import type { Engine } from "./engine.ts";
import type { BucketRange, UsageStore, UsageSum } from "./store.ts";

/** Rows read in one go, up to five milliseconds of work: flushes get their turn between two slices. */
const rowsPerSlice = 1000;

interface Row extends UsageSum {
  /** A day, or a bucket's first minute. */
  period: number;
  keyId: number;
}

/** A key's name as JSON. */
type KeyNames = (keyId: number) => string;

/** The two reports that can be long: read in slices as they are asked for, so that neither side ever holds them whole. */
export function createUsageReports(engine: Engine): Pick<UsageStore, "daily" | "history"> {
  return {
    daily: (sinceDay) => joined(daily(engine, dayNumberFrom(sinceDay))),
    history: (range) => joined(history(engine, range)),
  };
}

const encoder = new TextEncoder();

async function* joined(slices: AsyncIterable<string[]>): AsyncGenerator<Uint8Array> {
  let separator = "";
  for await (const slice of slices) {
    if (slice.length === 0) continue;
    yield encoder.encode(separator + slice.join(","));
    separator = ",";
  }
}

async function* daily(engine: Engine, sinceDay: number): AsyncGenerator<string[]> {
  const { rows, tables } = engine;
  const { usageDay } = tables;
  const names = createKeyNames(engine);
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
    const nameOf = await names(found);
    yield found.map((row) => `{"date":"${dayFromNumber(row.period)}",${usageJson(row, nameOf)}}`);
    before = from;
  }

  /** Whole days, as many as fit; a day of more keys than that comes alone. */
  async function startOfSlice(within: SQL): Promise<number | undefined> {
    const newestFirst = sql`from ${usageDay} where ${within} order by ${usageDay.day} desc, ${usageDay.keyId} desc limit 1`;
    const [newest] = await rows<{ day: number }>(sql`select ${usageDay.day} as "day" ${newestFirst}`);
    const [edge] = await rows<{ day: number }>(
      sql`select ${usageDay.day} as "day" ${newestFirst} offset ${rowsPerSlice}`,
    );
    if (newest === undefined || edge === undefined) return newest && sinceDay;
    return Math.min(edge.day + 1, newest.day);
  }
}

async function* history(engine: Engine, range: BucketRange): AsyncGenerator<string[]> {
  const names = createKeyNames(engine);
  let bucket: Row[] = [];
  for await (const sums of summedSlices(engine, range)) {
    const nameOf = await names(sums);
    const slice: string[] = [];
    for (const row of sums) {
      if (bucket[0] !== undefined && bucket[0].period !== row.period) {
        slice.push(...pointsOf(bucket, nameOf));
        bucket = [];
      }
      bucket.push(row);
    }
    yield slice;
  }
  yield pointsOf(bucket, await names(bucket));
}

/** One point for each key of a bucket, whose rows came from one slice or from several. */
function pointsOf(bucket: readonly Row[], nameOf: KeyNames): string[] {
  const [first] = bucket;
  if (first === undefined) return [];
  const start = timestampOf(first.period * msPerMinute);
  const byKey = new Map<number, Row>();
  for (const row of bucket) {
    const sum = byKey.get(row.keyId);
    byKey.set(row.keyId, sum === undefined ? row : plus(sum, row));
  }
  return [...byKey.values()]
    .toSorted((a, b) => a.keyId - b.keyId)
    .map((row) => `{"bucket_start":"${start}",${usageJson(row, nameOf)}}`);
}

const plus = (sum: Row, row: Row): Row => ({
  ...sum,
  requestCount: sum.requestCount + row.requestCount,
  inputTokens: sum.inputTokens + row.inputTokens,
  outputTokens: sum.outputTokens + row.outputTokens,
});

const usageJson = (row: Row, nameOf: KeyNames): string =>
  `"key_id":${row.keyId},"key_name":${nameOf(row.keyId)},"request_count":${row.requestCount},` +
  `"input_tokens":${row.inputTokens},"output_tokens":${row.outputTokens}`;

/** Rows summed by bucket and key, oldest first. A bucket may go on in the next slice. */
async function* summedSlices({ rows, tables }: Engine, { since, bucketMinutes }: BucketRange): AsyncGenerator<Row[]> {
  const { usageMinute, usageHour } = tables;
  const [newest] = await rows<{ minute: number | null }>(
    sql`select max(${usageMinute.minute}) as "minute" from ${usageMinute}`,
  );
  if (newest === undefined || newest.minute === null) return;

  for (const { unit, from, to } of stretches(minuteOf(since), newest.minute + 1, bucketMinutes)) {
    const [table, period] = unit === 1 ? [usageMinute, usageMinute.minute] : [usageHour, usageHour.hour];
    const bucket = sql`(${period} * ${unit} + ${offsetMinutes}) / ${bucketMinutes} * ${bucketMinutes} - ${offsetMinutes}`;
    for (let start = from; start < to;) {
      const [edge] = await rows<{ period: number }>(
        sql`select ${period} as "period" from ${table} where ${period} >= ${start} and ${period} < ${to}
          order by ${period}, ${table.keyId} limit 1 offset ${rowsPerSlice}`,
      );
      // Whole minutes or hours, as many as fit; one of more keys than that comes alone.
      const end = edge === undefined ? to : Math.max(edge.period, start + 1);
      yield await rows<Row>(
        sql`select ${bucket} as "period", ${table.keyId} as "keyId",
          sum(${table.requestCount}) as "requestCount", sum(${table.inputTokens}) as "inputTokens",
          sum(${table.outputTokens}) as "outputTokens"
          from ${table} where ${period} >= ${start} and ${period} < ${end} group by 1, 2 order by 1, 2`,
      );
      start = end;
    }
  }
}

interface Stretch {
  /** Minutes that one row covers. */
  unit: 1 | typeof minutesPerHour;
  /** In units since the epoch; the end is exclusive. */
  from: number;
  to: number;
}

/** Which table to read for which part of a window: hours where they lie within the window and one bucket, else minutes. */
export function stretches(fromMinute: number, toMinute: number, bucketMinutes: number): Stretch[] {
  const found: Stretch[] = [];
  const firstHour = Math.floor(fromMinute / minutesPerHour);
  for (let hour = firstHour; hour * minutesPerHour < toMinute; hour++) {
    const first = hour * minutesPerHour;
    const next = first + minutesPerHour;
    const fits = first >= fromMinute && bucketFloor(first, bucketMinutes) === bucketFloor(next - 1, bucketMinutes);
    const part: Stretch = fits
      ? { unit: minutesPerHour, from: hour, to: hour + 1 }
      : { unit: 1, from: Math.max(first, fromMinute), to: Math.min(next, toMinute) };
    const last = found.at(-1);
    if (last?.unit === part.unit) last.to = part.to;
    else found.push(part);
  }
  return found;
}

/**
 * Names are read once a report, not once a row, and again only for a key that was made meanwhile. A key that is gone has
 * its last one.
 */
function createKeyNames({ db, tables: { keys, deletedKeys } }: Engine): (rows: readonly Row[]) => Promise<KeyNames> {
  let names = new Map<number, string>();
  return async (found) => {
    if (found.some(({ keyId }) => !names.has(keyId))) {
      const gone = await db.select({ id: deletedKeys.id, name: deletedKeys.name }).from(deletedKeys);
      const there = await db.select({ id: keys.id, name: keys.name }).from(keys);
      names = new Map([...gone, ...there].map(({ id, name }) => [id, JSON.stringify(name)]));
    }
    return (keyId) => names.get(keyId) ?? '""';
  };
}
