import { type SQL, sql } from "drizzle-orm";
import { dayFromNumber, dayNumberFrom, minuteOf, minutesPerHour, msPerMinute, timestampOf } from "../../time/seoul.ts";
import { type Engine, encodeSlices, joinSlices, rowsPerSlice } from "../engine/engine.ts";
import { createNameReader, type GetKeyName } from "./key-filter.ts";
import type { BucketRange, UsageReports } from "./contract.ts";
import { chart } from "./chart.ts";
import { costs } from "./costs.ts";
import { type MinuteRange, sumSlices, type UsageRow } from "./slices.ts";
import { addSums, noSum } from "../../domain/usage.ts";

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
  /** The last bucket, which the next slice may continue. */
  let open: UsageRow[] = [];
  for await (const sums of sumSlices(engine, await minutesIn(engine, range), range.bucketMinutes)) {
    const isContinued = open[0] !== undefined && open[0].period === sums[0]?.period;
    const rows = isContinued ? addByKey([...open, ...sums]) : [...open, ...sums];
    const last = rows.findIndex(({ period }) => period === rows.at(-1)?.period);
    open = rows.splice(Math.max(0, last));
    yield formatBuckets(rows, await readNames(rows));
  }
  yield formatBuckets(open, await readNames(open));
}

function addByKey(rows: readonly UsageRow[]): UsageRow[] {
  const sums = new Map<string, UsageRow>();
  for (const row of rows) {
    const id = `${row.period} ${row.keyId}`;
    sums.set(id, { ...row, ...addSums(sums.get(id) ?? noSum, row) });
  }
  return [...sums.values()].toSorted((a, b) => a.period - b.period || a.keyId - b.keyId);
}

/** One point for each key of each bucket. */
function formatBuckets(rows: readonly UsageRow[], nameOf: GetKeyName): string[] {
  let [bucket, start] = [NaN, ""];
  return rows.map((row) => {
    if (row.period !== bucket) [bucket, start] = [row.period, timestampOf(row.period * msPerMinute)];
    return `{"bucket_start":"${start}",${formatUsage(row, nameOf)}}`;
  });
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
