import { and, eq, gte, isNotNull, lt, type SQL, sql } from "drizzle-orm";
import { minuteOf } from "../../time/seoul.ts";
import { columnName } from "../schema/table-names.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { prepareGpuMinutes, type SampleIds } from "./minutes-and-hours.ts";
import { lastUsedAtAfter } from "../keys/keys.ts";
import { keptSamples } from "../retention.ts";
import type { GpuPush, SharedGpu } from "./contract.ts";
import type { GpuReading } from "../../domain/gpu.ts";

/** A sample's id is `recordedAt * idsPerMillisecond + gpuId`. */
const idsPerMillisecond = 256;

/** Two hosts send the same GPU if its host changes again within this time. A single change is a new name. */
export const sharedGpuMs = 120_000;

export const recordedAtOf = (id: number): number => Math.floor(id / idsPerMillisecond);

/** The write path of GPU telemetry; runs within a transaction. @returns the GPUs that another host sends too */
export function prepareGpuIngest(engine: Engine): (push: GpuPush) => Promise<readonly SharedGpu[]> {
  const findFreeMillisecond = prepareFindFreeMillisecond(engine);
  const writeSamples = prepareWriteSamples(engine);
  const minutes = prepareGpuMinutes(engine);
  const deleteOld = prepareDeleteOld(engine);
  const listShared = prepareListShared(engine);
  const markKeyUsed = prepareMarkKeyUsed(engine);

  return async ({ keyId, recordedAt, host = null, readings }) => {
    await engine.lock("gpu_samples");
    // If one push names a GPU twice, its last reading counts.
    const distinct = [...new Map(readings.map((reading) => [reading.gpuId, reading])).values()];
    const freeAt = distinct.length > 0 ? await findFreeMillisecond(recordedAt) : recordedAt;
    if (distinct.length > 0) {
      const ids = idsAt(freeAt);
      await writeSamples(freeAt, host, distinct);
      await minutes.add(minuteOf(freeAt), ids);
      await minutes.setPower(minuteOf(freeAt), sumOfPower(distinct));
    }
    await minutes.rollUpHour(minuteOf(recordedAt));
    await engine.pipeline([...deleteOld(recordedAt), () => markKeyUsed(keyId, recordedAt)]);
    return host === null ? [] : listShared(freeAt);
  };
}

const idsAt = (recordedAt: number): SampleIds => ({
  from: recordedAt * idsPerMillisecond,
  to: (recordedAt + 1) * idsPerMillisecond,
});

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
      const found = await sampleBetween.execute({ ...idsAt(ms) });
      if (found.length === 0) return ms;
    }
  };
}

const readingFields = ["name", "powerDrawW", "tempC", "memoryUsedMb", "memoryTotalMb", "utilizationPct"] as const;

function prepareWriteSamples(
  engine: Engine,
): (recordedAt: number, host: string | null, readings: readonly GpuReading[]) => Promise<void> {
  const { gpuSamples, gpuLatest } = engine.tables;
  const insertSamples = engine.prepareInsert(gpuSamples, ["id", ...readingFields]);
  const inserted = ["id", "host", ...readingFields].map((name) => [
    name,
    sql.raw(`excluded.${columnName(gpuLatest, name)}`),
  ]);
  const replaceLatest = engine.db
    .insert(gpuLatest)
    .select(
      sql`select ${gpuSamples.id} % ${idsPerMillisecond}, ${gpuSamples}.*, cast(${sql.placeholder("host")} as text),
        cast(${sql.placeholder("recordedAt")} as bigint), null
        from ${gpuSamples} where ${gpuSamples.id} >= ${sql.placeholder("from")} and ${gpuSamples.id} < ${sql.placeholder("to")}`,
    )
    .onConflictDoUpdate({ target: gpuLatest.gpuId, set: { ...Object.fromEntries(inserted), ...hostChange(engine) } })
    .prepare();
  return async (recordedAt, host, readings) => {
    const idOf = ({ gpuId }: GpuReading): number => recordedAt * idsPerMillisecond + gpuId;
    await insertSamples(readings.map((one) => [idOf(one), ...readingFields.map((field) => one[field])]))();
    await replaceLatest.execute({ ...idsAt(recordedAt), host, recordedAt });
  };
}

function hostChange({ tables: { gpuLatest } }: Engine): Record<"hostChangedAt" | "otherHost", SQL> {
  const { host, hostChangedAt, otherHost } = gpuLatest;
  const isChange = sql`excluded.host <> ${host}`;
  const isSoon = sql`${hostChangedAt} > excluded.host_changed_at - ${sql.raw(String(sharedGpuMs))}`;
  return {
    hostChangedAt: sql`case when ${isChange} then excluded.host_changed_at else ${hostChangedAt} end`,
    otherHost: sql`case when ${isChange} and ${isSoon} then ${host} when ${isChange} then null else ${otherHost} end`,
  };
}

/** The GPUs whose host changed with the push of that millisecond. */
function prepareListShared({ db, tables: { gpuLatest } }: Engine): (recordedAt: number) => Promise<SharedGpu[]> {
  const { gpuId, host, otherHost, hostChangedAt } = gpuLatest;
  const query = db
    .select({ gpuId, host, otherHost })
    .from(gpuLatest)
    .where(and(eq(hostChangedAt, sql.placeholder("recordedAt")), isNotNull(otherHost)))
    .prepare();
  return async (recordedAt) => {
    const rows = await query.execute({ recordedAt });
    return rows.map((row) => ({ gpuId: row.gpuId, hosts: [row.host ?? "", row.otherHost ?? ""] }));
  };
}

/** After a long pause the following pushes delete the rest. */
function prepareDeleteOld({ db, tables }: Engine): (now: number) => Statement[] {
  const { gpuSamples, gpuLatest } = tables;
  const cutoff = sql.placeholder("cutoff");
  const firstSamples = sql`(select min(id) + ${keptSamples.perPushMs * idsPerMillisecond} from ${gpuSamples})`;
  const deleteSamples = db
    .delete(gpuSamples)
    .where(and(lt(gpuSamples.id, cutoff), lt(gpuSamples.id, firstSamples)))
    .prepare();
  const deleteLatest = db.delete(gpuLatest).where(lt(gpuLatest.id, cutoff)).prepare();

  return (now) => {
    const oldestId = (now - keptSamples.ms) * idsPerMillisecond;
    return [deleteSamples, deleteLatest].map((query) => () => query.execute({ cutoff: oldestId }));
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
