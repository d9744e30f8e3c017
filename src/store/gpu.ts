import { and, asc, eq, gte, lt, sql } from "drizzle-orm";
import { minuteOf, minutesPerDay, msPerMinute, offsetMinutes } from "../time/seoul.ts";
import { lastUsedAtAfter } from "./keys.ts";
import type { Engine } from "./engine.ts";
import type { GpuReading } from "../domain.ts";
import type { GpuStore } from "./store.ts";

const gpusPerSample = 256;
const samplesKeptMs = 7 * minutesPerDay * msPerMinute;
/** The longest window is 30 days; a bucket may begin up to a day before it. */
const powerKeptMinutes = 32 * minutesPerDay;
/** What one ingest deletes at most: after a standstill the rest goes with the ones that follow. */
const prunedMs = 10_000;
const prunedMinutes = 10;

type Batch = Parameters<GpuStore["add"]>[0];

export function createGpuStore(engine: Engine): GpuStore {
  const { db, tables, transaction, lock } = engine;
  const { gpuLatest, gpuPowerMinute } = tables;
  const add = prepareAdding(engine);
  const prune = preparePruning(engine);
  const markUsed = db
    .update(tables.keys)
    .set({ lastUsedAt: lastUsedAtAfter(sql`cast(${sql.placeholder("usedAt")} as bigint)`, tables) })
    .where(eq(tables.keys.id, sql.placeholder("keyId")))
    .prepare();
  const latest = db.select().from(gpuLatest).orderBy(asc(gpuLatest.gpuId)).prepare();

  return {
    add: (batch) =>
      transaction(async () => {
        await lock("gpu_samples");
        await add(batch);
        await prune(batch.recordedAt);
        await markUsed.execute({ keyId: batch.keyId, usedAt: batch.recordedAt });
      }),
    async latest() {
      const rows = await latest.execute();
      return rows.map((row) => Object.assign(row, { recordedAt: Math.floor(row.id / gpusPerSample) }));
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

function prepareAdding({ db, tables, jsonRows }: Engine): (batch: Batch) => Promise<void> {
  const { gpuSamples, gpuLatest, gpuPowerMinute } = tables;
  const rows = jsonRows(sql.placeholder("rows"));
  const types = ["bigint", "text", "double precision", "bigint", "bigint", "bigint", "bigint"];
  const column = (position: number) => sql.raw(`cast(value->>${position} as ${types[position]})`);
  const readingColumns = sql.join([1, 2, 3, 4, 5, 6].map(column), sql`, `);

  const taken = db
    .select({ id: gpuSamples.id })
    .from(gpuSamples)
    .where(and(gte(gpuSamples.id, sql.placeholder("from")), lt(gpuSamples.id, sql.placeholder("to"))))
    .limit(1)
    .prepare();
  const insertSamples = db
    .insert(gpuSamples)
    .select(sql`select ${column(0)}, ${readingColumns} from ${rows} where true`)
    .prepare();
  const replaceLatest = db
    .insert(gpuLatest)
    .select(sql`select ${column(0)} % ${gpusPerSample}, ${column(0)}, ${readingColumns} from ${rows} where true`)
    .onConflictDoUpdate({
      target: gpuLatest.gpuId,
      set: {
        id: sql`excluded.id`,
        name: sql`excluded.name`,
        powerDrawW: sql`excluded.power_draw_w`,
        tempC: sql`excluded.temp_c`,
        memoryUsedMb: sql`excluded.memory_used_mb`,
        memoryTotalMb: sql`excluded.memory_total_mb`,
        utilizationPct: sql`excluded.utilization_pct`,
      },
    })
    .prepare();
  const raisePower = db
    .insert(gpuPowerMinute)
    .values({ minute: sql.placeholder("minute"), powerDrawW: sql.placeholder("powerDrawW") })
    .onConflictDoUpdate({
      target: gpuPowerMinute.minute,
      set: { powerDrawW: sql`excluded.power_draw_w` },
      setWhere: sql`excluded.power_draw_w > ${gpuPowerMinute.powerDrawW}`,
    })
    .prepare();

  /** Each sample has a millisecond to itself: two hosts that push at once must not look like one, nor replace each other. */
  const freeMoment = async (recordedAt: number): Promise<number> => {
    for (let moment = recordedAt; ; moment++) {
      const from = moment * gpusPerSample;
      const found = await taken.execute({ from, to: from + gpusPerSample });
      if (found.length === 0) return moment;
    }
  };

  return async ({ recordedAt, readings }) => {
    if (readings.length === 0) return;
    const moment = await freeMoment(recordedAt);
    // Of a GPU that is named twice in one sample, the last reading holds.
    const byGpu = new Map(readings.map((reading) => [reading.gpuId, reading]));
    const json = JSON.stringify([...byGpu.values()].map((one) => rowOf(moment, one)));
    await insertSamples.execute({ rows: json });
    await replaceLatest.execute({ rows: json });
    const powerDrawW = [...byGpu.values()].reduce((sum, one) => sum + (one.powerDrawW ?? 0), 0);
    await raisePower.execute({ minute: minuteOf(moment), powerDrawW });
  };
}

function rowOf(recordedAt: number, reading: GpuReading): (number | string | null)[] {
  return [
    recordedAt * gpusPerSample + reading.gpuId,
    reading.name,
    reading.powerDrawW,
    reading.tempC,
    reading.memoryUsedMb,
    reading.memoryTotalMb,
    reading.utilizationPct,
  ];
}

function preparePruning({ db, tables }: Engine): (now: number) => Promise<void> {
  const { gpuSamples, gpuLatest, gpuPowerMinute } = tables;
  const cutoff = sql.placeholder("cutoff");
  const statements = [
    db
      .delete(gpuSamples)
      .where(
        and(
          lt(gpuSamples.id, cutoff),
          lt(gpuSamples.id, sql`(select min(id) + ${prunedMs * gpusPerSample} from ${gpuSamples})`),
        ),
      )
      .prepare(),
    db.delete(gpuLatest).where(lt(gpuLatest.id, cutoff)).prepare(),
  ];
  const prunePower = db
    .delete(gpuPowerMinute)
    .where(
      and(
        lt(gpuPowerMinute.minute, cutoff),
        lt(gpuPowerMinute.minute, sql`(select min(minute) + ${prunedMinutes} from ${gpuPowerMinute})`),
      ),
    )
    .prepare();

  return async (now) => {
    const oldest = (now - samplesKeptMs) * gpusPerSample;
    for (const statement of statements) await statement.execute({ cutoff: oldest });
    await prunePower.execute({ cutoff: minuteOf(now) - powerKeptMinutes });
  };
}
