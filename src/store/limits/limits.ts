import { and, eq, gt, inArray, isNotNull } from "drizzle-orm";
import { dayNumberOf } from "../../time/seoul.ts";
import type { WallClock } from "../../time/clock.ts";
import type { Engine } from "../engine/engine.ts";
import { prepareInstances } from "./instances.ts";
import { prepareLoads } from "./key-loads.ts";
import { prepareTake } from "./take-leases.ts";
import type { LimitStore } from "./contract.ts";
import { isAtLimit } from "./windows.ts";
import { parseRules } from "../keys/rules.ts";
import { hasLimit } from "../../domain/limits.ts";
import type { KeyId } from "../../domain/keys.ts";

export function createLimitStore(engine: Engine, clock: WallClock): LimitStore {
  const { db, tables } = engine;
  const { keyRefusals, keys } = tables;
  const loads = prepareLoads(engine);
  return {
    take: prepareTake(engine, clock),
    async listLoads(keyIds) {
      const now = clock();
      const byKey = await loads.ofKeys(keyIds, now);
      const today = and(eq(keyRefusals.day, dayNumberOf(now)), inArray(keyRefusals.keyId, [...keyIds]));
      const refusals = await db.select().from(keyRefusals).where(today);
      const refusedOf = new Map(refusals.map(({ keyId, requests }) => [keyId, requests]));
      const estimatedOf = await loads.estimatesOf(keyIds, now);
      return keyIds.map((keyId) => ({
        keyId,
        ...byKey(keyId),
        refusedToday: refusedOf.get(keyId) ?? 0,
        estimated: estimatedOf(keyId),
        readAt: now,
      }));
    },
    async countAtLimit() {
      const ruled = and(eq(keys.isActive, true), isNotNull(keys.rules));
      const found = await db.select({ id: keys.id, rules: keys.rules }).from(keys).where(ruled);
      const limited = found
        .map(({ id, rules }) => ({ id, limits: parseRules(rules ?? "{}") }))
        .filter(({ limits }) => hasLimit(limits));
      const loadOf = await loads.ofKeys(
        limited.map(({ id }) => id),
        clock(),
      );
      return limited.filter(({ id, limits }) => isAtLimit(loadOf(id), limits)).length;
    },
    listDays: loads.listDays,
    ...prepareInstances(engine, clock),
    ...prepareEndings(engine, clock),
  };
}

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
        await deleteFuture(keyId);
        await db.insert(keyEndings).values({ keyId, endedAt: at });
      }),
  };
}
