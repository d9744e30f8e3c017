import { type SQL, sql } from "drizzle-orm";
import { dayFromNumber, dayNumberFrom, minuteOf, minutesPerHour, msPerMinute, timestampOf } from "../../time/seoul.ts";
import { type Engine, encodeSlices, joinSlices, rowsPerSlice } from "../engine/engine.ts";
import { createNameReader, type GetKeyName } from "./key-filter.ts";
import type { BucketRange, UsageReports } from "./contract.ts";
import { chart } from "./chart.ts";
import { costs } from "./costs.ts";
import { type MinuteRange, sumSlices, type UsageRow } from "./slices.ts";
import type { KeyId } from "../../domain/keys.ts";
import { addSums } from "../../domain/usage.ts";

export function createUsageReports(engine: Engine): UsageReports {
  return {
    daily: (sinceDay) => joinSlices(daily(engine, sinceDay)),
    history: (range) => joinSlices(history(engine, range)),
    chart: (range) => encodeSlices(chart(engine, range)),
    costs: (range) => encodeSlices(costs(engine, range)),
  };
}

async function* daily(engine: Engine, firstDay: string): AsyncGenerator<string[]> {
  const readNames = createNameReader(engine);
  for await (const rows of daySlices(engine, firstDay)) {
    const nameOf = await readNames(rows);
    yield rows.map((row) => `{"date":"${dayFromNumber(row.period)}",${formatUsage(row, nameOf)}}`);
  }
}

/** Rows by day, latest first, and key. A slice has as many whole days as fit; a day with more rows is one of its own. */
async function* daySlices({ rows, tables: { usageDay } }: Engine, firstDay: string): AsyncGenerator<UsageRow[]> {
  const sinceDay = dayNumberFrom(firstDay);
  let before = Number.MAX_SAFE_INTEGER;
  for (;;) {
    const within = sql`${usageDay.day} >= ${sinceDay} and ${usageDay.day} < ${before} and ${usageDay.keyId} > 0`;
    const from = await startOfSlice(within);
    if (from === undefined) return;
    yield await rows<UsageRow>(
      sql`select ${usageDay.day} as "period", ${usageDay.keyId} as "keyId",
        ${usageDay.requestCount} as "requestCount", ${usageDay.inputTokens} as "inputTokens",
        ${usageDay.outputTokens} as "outputTokens"
        from ${usageDay} where ${within} and ${usageDay.day} >= ${from}
        order by ${usageDay.day} desc, ${usageDay.keyId}`,
    );
    before = from;
  }

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
  let bucket: UsageRow[] = [];
  for await (const sums of sumSlices(engine, await minutesIn(engine, range), range.bucketMinutes)) {
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
function formatBucket(bucket: readonly UsageRow[], nameOf: GetKeyName): string[] {
  const [first] = bucket;
  if (first === undefined) return [];
  const start = timestampOf(first.period * msPerMinute);
  const byKey = new Map<KeyId, UsageRow>();
  for (const row of bucket) {
    const sum = byKey.get(row.keyId);
    byKey.set(row.keyId, sum === undefined ? row : { ...sum, ...addSums(sum, row) });
  }
  return [...byKey.values()]
    .toSorted((a, b) => a.keyId - b.keyId)
    .map((row) => `{"bucket_start":"${start}",${formatUsage(row, nameOf)}}`);
}

const formatUsage = (row: UsageRow, nameOf: GetKeyName): string =>
  `"key_id":${row.keyId},"key_name":${nameOf(row.keyId)},"request_count":${row.requestCount},` +
  `"input_tokens":${row.inputTokens},"output_tokens":${row.outputTokens}`;

/** Up to the end of the latest hour, which stays when its minutes are deleted. */
async function minutesIn({ rows, tables: { usageHour } }: Engine, { since }: BucketRange): Promise<MinuteRange> {
  const from = minuteOf(since);
  const [latest] = await rows<{ hour: number | null }>(sql`select max(${usageHour.hour}) as "hour" from ${usageHour}`);
  if (latest === undefined || latest.hour === null) return { from, to: from };
  return { from, to: (latest.hour + 1) * minutesPerHour };
}
