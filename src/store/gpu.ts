import { asc, sql } from "drizzle-orm";
import { bucketFloor, minuteOf, msPerMinute, offsetMinutes, timestampOf } from "../time/seoul.ts";
import type { Engine } from "./engine.ts";
import { prepareGpuIngest, recordedAtOf } from "./gpu-ingest.ts";
import { joinSlices, rowsPerSlice } from "./json-slices.ts";
import type { BucketRange, GpuStore } from "./store.ts";

export function createGpuStore(engine: Engine): GpuStore {
  const { db, tables, transaction } = engine;
  const { gpuLatest } = tables;
  const ingest = prepareGpuIngest(engine);
  const latest = db.select().from(gpuLatest).orderBy(asc(gpuLatest.gpuId)).prepare();

  return {
    add: (push) => transaction(() => ingest(push)),
    async latest() {
      const rows = await latest.execute();
      return rows.map((row) => Object.assign(row, { recordedAt: recordedAtOf(row.id) }));
    },
    powerHistory: (range) => joinSlices(powerSlices(engine, range)),
  };
}

async function* powerSlices({ rows, tables }: Engine, { since, bucketMinutes }: BucketRange): AsyncGenerator<string[]> {
  const { minute, powerDrawW } = tables.gpuPowerMinute;
  const [window] = await rows<{ first: number | null; last: number | null }>(
    sql`select min(${minute}) as "first", max(${minute}) as "last" from ${tables.gpuPowerMinute}
      where ${minute} >= ${minuteOf(since)}`,
  );
  if (window === undefined || window.first === null || window.last === null) return;

  // Whole buckets.
  const minutesPerSlice = Math.ceil(rowsPerSlice / bucketMinutes) * bucketMinutes;
  const bucket = sql`(${minute} + ${offsetMinutes}) / ${bucketMinutes} * ${bucketMinutes} - ${offsetMinutes}`;
  for (let start = bucketFloor(window.first, bucketMinutes); start <= window.last; start += minutesPerSlice) {
    const points = await rows<{ bucket: number; powerDrawW: number }>(
      sql`select ${bucket} as "bucket", max(${powerDrawW}) as "powerDrawW" from ${tables.gpuPowerMinute}
        where ${minute} >= ${Math.max(start, window.first)} and ${minute} < ${start + minutesPerSlice}
        group by 1 order by 1`,
    );
    yield points.map(
      (point) => `{"recorded_at":"${timestampOf(point.bucket * msPerMinute)}","power_draw_w":${point.powerDrawW}}`,
    );
  }
}
