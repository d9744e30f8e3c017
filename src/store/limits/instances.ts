import { and, asc, gt, inArray, notInArray, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import type { Engine } from "../engine/engine.ts";
import type { LimitStore } from "./contract.ts";
import { prepareAddTokens } from "./settling.ts";

/** For about so long a process is silent before the others release what it held. */
const deadSeconds = 15;

/** The processes that hold leases. What a dead one held is given back by the others. */
export function prepareInstances(
  engine: Engine,
  clock: WallClock,
): Pick<LimitStore, "beat" | "listInstances" | "remove"> {
  const { db, transaction, pipeline, lock, tables } = engine;
  const { keyLeases, instances } = tables;
  const addTokens = prepareAddTokens(engine, deadSeconds);

  /** At the first beat of a process, or after the others took it for dead, such as after a long stop of the machine. */
  async function onListed(): Promise<void> {
    // One process at a time: otherwise another one may delete what this one, which it does not see listed yet, holds.
    await lock("admissions");
    // A process that died before it was listed is never removed. One that lives writes again what it holds.
    await db.delete(keyLeases).where(notInArray(keyLeases.instance, db.select({ id: instances.id }).from(instances)));
  }

  /** Its requests may have used what they reserved, before it died. */
  async function charge(dead: readonly string[]): Promise<void> {
    const held = await db
      .select()
      .from(keyLeases)
      .where(and(inArray(keyLeases.instance, [...dead]), gt(keyLeases.tokens, 0)));
    const at = clock();
    await pipeline(addTokens(held.map(({ keyId, instance, tokens }) => ({ keyId, writer: instance, tokens, at }))));
  }

  return {
    beat: (instance) =>
      transaction(async () => {
        const [own] = await db
          .insert(instances)
          .values({ id: instance, beat: 1 })
          .onConflictDoUpdate({ target: instances.id, set: { beat: sql`${instances.beat} + 1` } })
          .returning();
        if (own?.beat === 1) await onListed();
        return await db.select().from(instances).orderBy(asc(instances.id));
      }),
    listInstances: async () => db.select().from(instances),
    remove: (dead) =>
      transaction(async () => {
        await charge(dead);
        await db.delete(keyLeases).where(inArray(keyLeases.instance, [...dead]));
        await db.delete(instances).where(inArray(instances.id, [...dead]));
      }),
  };
}
