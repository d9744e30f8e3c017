import { and, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import { minuteOf, minutesPerDay, msPerMinute } from "../time/seoul.ts";
import type { Engine } from "./engine.ts";
import { lastUsedAtAfter } from "./keys.ts";
import type { GpuReading } from "../domain.ts";
import type { GpuPush } from "./store.ts";

/** A sample's id is `recordedAt * idsPerMillisecond + gpuId`. */
const idsPerMillisecond = 256;
const sampleRetentionMs = 7 * minutesPerDay * msPerMinute;
/** The longest window is 30 days; its first bucket may begin up to a day earlier. */
const powerRetentionMinutes = 32 * minutesPerDay;
/** Limits what one push deletes; after a long pause the following pushes delete the rest. */
const maxPrunedMs = 10_000;
const maxPrunedMinutes = 10;

export const recordedAtOf = (id: number): number => Math.floor(id / idsPerMillisecond);

/** The write path of GPU telemetry; runs within a transaction. */
export function prepareGpuIngest(engine: Engine): (push: GpuPush) => Promise<void> {
  const findFreeMillisecond = prepareFindFreeMillisecond(engine);
  const writeSamples = prepareWriteSamples(engine);
  const raisePower = prepareRaisePower(engine);
  const prune = preparePruning(engine);
  const markKeyUsed = prepareMarkKeyUsed(engine);

  return async ({ keyId, recordedAt, readings }) => {
    await engine.lock("gpu_samples");
    // If one push names a GPU twice, its last reading counts.
    const distinct = [...new Map(readings.map((reading) => [reading.gpuId, reading])).values()];
    if (distinct.length > 0) {
      const freeAt = await findFreeMillisecond(recordedAt);
      await writeSamples(freeAt, distinct);
      await raisePower(minuteOf(freeAt), sumOfPower(distinct));
    }
    await prune(recordedAt);
    await markKeyUsed(keyId, recordedAt);
  };
}

const sumOfPower = (readings: readonly GpuReading[]): number =>
  readings.reduce((sum, { powerDrawW }) => sum + (powerDrawW ?? 0), 0);

/** Each push gets a millisecond to itself, so that two hosts that push at once neither look like one nor collide. */
function prepareFindFreeMillisecond({ db, tables: { gpuSamples } }: Engine): (fromMs: number) => Promise<number> {
  const sampleBetween = db
    .select({ id: gpuSamples.id })
    .from(gpuSamples)
    .where(and(gte(gpuSamples.id, sql.placeholder("from")), lt(gpuSamples.id, sql.placeholder("to"))))
    .limit(1)
    .prepare();

  return async (fromMs) => {
    for (let ms = fromMs; ; ms++) {
      const from = ms * idsPerMillisecond;
      const found = await sampleBetween.execute({ from, to: from + idsPerMillisecond });
      if (found.length === 0) return ms;
    }
  };
}

/** The types of the columns of `rowOf`, by position. */
const rowTypes = ["bigint", "text", "double precision", "bigint", "bigint", "bigint", "bigint"] as const;

/** Two constant statements, however many GPUs: all rows are passed as one JSON parameter. */
function prepareWriteSamples(engine: Engine): (recordedAt: number, readings: readonly GpuReading[]) => Promise<void> {
  const { db, jsonRows } = engine;
  const { gpuSamples, gpuLatest } = engine.tables;
  const rows = jsonRows(sql.placeholder("rows"));
  const [id = sql``, ...reading] = rowTypes.map((type, position) => sql.raw(`cast(value->>${position} as ${type})`));
  const columns = sql.join([id, ...reading], sql`, `);

  const insertSamples = db
    .insert(gpuSamples)
    .select(sql`select ${columns} from ${rows} where true`)
    .prepare();
  const replaceLatest = db
    .insert(gpuLatest)
    .select(sql`select ${id} % ${idsPerMillisecond}, ${columns} from ${rows} where true`)
    .onConflictDoUpdate({ target: gpuLatest.gpuId, set: insertedReading })
    .prepare();

  return async (recordedAt, readings) => {
    const json = JSON.stringify(readings.map((one) => rowOf(recordedAt, one)));
    await insertSamples.execute({ rows: json });
    await replaceLatest.execute({ rows: json });
  };
}

const insertedReading: Record<"id" | Exclude<keyof GpuReading, "gpuId">, SQL> = {
  id: sql`excluded.id`,
  name: sql`excluded.name`,
  powerDrawW: sql`excluded.power_draw_w`,
  tempC: sql`excluded.temp_c`,
  memoryUsedMb: sql`excluded.memory_used_mb`,
  memoryTotalMb: sql`excluded.memory_total_mb`,
  utilizationPct: sql`excluded.utilization_pct`,
};

function rowOf(recordedAt: number, reading: GpuReading): (number | string | null)[] {
  return [
    recordedAt * idsPerMillisecond + reading.gpuId,
    reading.name,
    reading.powerDrawW,
    reading.tempC,
    reading.memoryUsedMb,
    reading.memoryTotalMb,
    reading.utilizationPct,
  ];
}

function prepareRaisePower({ db, tables: { gpuPowerMinute } }: Engine) {
  const query = db
    .insert(gpuPowerMinute)
    .values({ minute: sql.placeholder("minute"), powerDrawW: sql.placeholder("powerDrawW") })
    .onConflictDoUpdate({
      target: gpuPowerMinute.minute,
      set: { powerDrawW: sql`excluded.power_draw_w` },
      setWhere: sql`excluded.power_draw_w > ${gpuPowerMinute.powerDrawW}`,
    })
    .prepare();
  return (minute: number, powerDrawW: number) => query.execute({ minute, powerDrawW });
}

function preparePruning({ db, tables }: Engine): (now: number) => Promise<void> {
  const { gpuSamples, gpuLatest, gpuPowerMinute } = tables;
  const cutoff = sql.placeholder("cutoff");
  const firstSamples = sql`(select min(id) + ${maxPrunedMs * idsPerMillisecond} from ${gpuSamples})`;
  const firstMinutes = sql`(select min(minute) + ${maxPrunedMinutes} from ${gpuPowerMinute})`;
  const pruneSamples = db
    .delete(gpuSamples)
    .where(and(lt(gpuSamples.id, cutoff), lt(gpuSamples.id, firstSamples)))
    .prepare();
  const pruneLatest = db.delete(gpuLatest).where(lt(gpuLatest.id, cutoff)).prepare();
  const prunePower = db
    .delete(gpuPowerMinute)
    .where(and(lt(gpuPowerMinute.minute, cutoff), lt(gpuPowerMinute.minute, firstMinutes)))
    .prepare();

  return async (now) => {
    const oldestId = (now - sampleRetentionMs) * idsPerMillisecond;
    await pruneSamples.execute({ cutoff: oldestId });
    await pruneLatest.execute({ cutoff: oldestId });
    await prunePower.execute({ cutoff: minuteOf(now) - powerRetentionMinutes });
  };
}

function prepareMarkKeyUsed({ db, tables }: Engine) {
  const query = db
    .update(tables.keys)
    .set({ lastUsedAt: lastUsedAtAfter(sql`cast(${sql.placeholder("usedAt")} as bigint)`, tables) })
    .where(eq(tables.keys.id, sql.placeholder("keyId")))
    .prepare();
  return (keyId: number, usedAt: number) => query.execute({ keyId, usedAt });
}
