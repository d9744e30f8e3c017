import { asc, gte, sql } from "drizzle-orm";
import { minuteOf, msPerMinute, offsetMinutes } from "../time/seoul.ts";
import type { Engine } from "./engine.ts";
import { prepareGpuIngest, recordedAtOf } from "./gpu-ingest.ts";
import type { GpuStore } from "./store.ts";

export function createGpuStore(engine: Engine): GpuStore {
  const { db, tables, transaction } = engine;
  const { gpuLatest, gpuPowerMinute } = tables;
  const ingest = prepareGpuIngest(engine);
  const latest = db.select().from(gpuLatest).orderBy(asc(gpuLatest.gpuId)).prepare();

  return {
    add: (push) => transaction(() => ingest(push)),
    async latest() {
      const rows = await latest.execute();
      return rows.map((row) => Object.assign(row, { recordedAt: recordedAtOf(row.id) }));
    },
    async powerHistory({ since, bucketMinutes }) {
      const bucket = sql`(${gpuPowerMinute.minute} + ${offsetMinutes}) / ${bucketMinutes}`.mapWith(Number);
      const rows = await db
        .select({ bucket, powerDrawW: sql<number>`max(${gpuPowerMinute.powerDrawW})` })
        .from(gpuPowerMinute)
        .where(gte(gpuPowerMinute.minute, minuteOf(since)))
        .groupBy(sql`1`)
        .orderBy(sql`1`);
      return rows.map((row) => ({
        bucketStart: (row.bucket * bucketMinutes - offsetMinutes) * msPerMinute,
        powerDrawW: row.powerDrawW,
      }));
    },
  };
}
