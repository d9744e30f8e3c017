import { and, eq, gt, inArray, lt, sql } from "drizzle-orm";
import type { KeyId } from "../../domain/keys.ts";
import { dayNumberOf, minuteOf } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { prepareInstances } from "./instances.ts";
import { prepareLoads } from "./key-loads.ts";
import { prepareAdmit } from "./admission.ts";
import { windowSeconds } from "./windows.ts";
import type { LimitStore } from "./contract.ts";

export function createLimitStore(engine: Engine, clock: WallClock): LimitStore {
  const { db, tables } = engine;
  const { keyRefusals } = tables;
  const loads = prepareLoads(engine);
  return {
    admit: prepareAdmit(engine, clock, preparePruning(engine)),
    async listLoads(keyIds) {
      const now = clock();
      const byKey = await loads.ofKeys(keyIds, now);
      const today = and(eq(keyRefusals.day, dayNumberOf(now)), inArray(keyRefusals.keyId, [...keyIds]));
      const refusals = await db.select().from(keyRefusals).where(today);
      const refusedOf = new Map(refusals.map(({ keyId, requests }) => [keyId, requests]));
      return keyIds.map((keyId) => ({ keyId, ...byKey(keyId), refusedToday: refusedOf.get(keyId) ?? 0 }));
    },
    listDays: loads.listDays,
    ...prepareInstances(engine),
    ...prepareEndings(engine, clock),
  };
}

/** Once a minute. @returns what forgets the seconds and days that count no more */
function preparePruning({ db, tables: { keySeconds, keyRefusals } }: Engine): (now: number) => Statement[] {
  const pruneSeconds = db
    .delete(keySeconds)
    .where(lt(keySeconds.second, sql.placeholder("second")))
    .prepare();
  const pruneRefusals = db
    .delete(keyRefusals)
    .where(lt(keyRefusals.day, sql.placeholder("day")))
    .prepare();
  let prunedMinute = 0;
  return (now) => {
    const minute = minuteOf(now);
    if (minute === prunedMinute) return [];
    prunedMinute = minute;
    return [
      () => pruneSeconds.execute({ second: Math.floor(now / 1000) - windowSeconds }),
      () => pruneRefusals.execute({ day: dayNumberOf(now) - 1 }),
    ];
  };
}

/** Long enough for every process to see it. */
const endingRetentionMs = 60_000;

export function prepareListEndings({ db, tables: { keyEndings, keys } }: Engine): LimitStore["listEndings"] {
  const { id, keyId, endedAt } = keyEndings;
  const query = db
    .select({ id, keyId, endedAt, isActive: keys.isActive, expiresAt: keys.expiresAt })
    .from(keyEndings)
    .leftJoin(keys, eq(keys.id, keyId))
    .prepare();
  return () => query.execute();
}

function prepareEndings(
  engine: Engine,
  clock: WallClock,
): Pick<LimitStore, "endRunning" | "keepRunning" | "listEndings"> {
  const { db, transaction, tables } = engine;
  const { keyEndings } = tables;
  const deleteFuture = async (keyId: KeyId): Promise<void> => {
    await db.delete(keyEndings).where(and(eq(keyEndings.keyId, keyId), gt(keyEndings.endedAt, clock())));
  };
  return {
    listEndings: prepareListEndings(engine),
    keepRunning: deleteFuture,
    endRunning: (keyId, at) =>
      transaction(async () => {
        await db.delete(keyEndings).where(lt(keyEndings.endedAt, clock() - endingRetentionMs));
        await deleteFuture(keyId);
        await db.insert(keyEndings).values({ keyId, endedAt: at });
      }),
  };
}
