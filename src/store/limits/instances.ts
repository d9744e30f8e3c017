import { asc, inArray, notInArray, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import type { HeldAdmission, LimitStore } from "./contract.ts";

/** The processes that hold admissions. What a dead one held is given back by the others. */
export function prepareInstances({
  db,
  transaction,
  lock,
  tables,
}: Engine): Pick<LimitStore, "beat" | "listInstances" | "remove"> {
  const { admissions, instances } = tables;

  /** At the first beat of a process, or after the others took it for dead, such as after a long stop of the machine. */
  async function onListed(held: readonly HeldAdmission[]): Promise<void> {
    // One process at a time: otherwise another one may delete what this one, which it does not see listed yet, holds.
    await lock("admissions");
    // A process that died before it was listed is never removed. One that lives stores again what it holds.
    await db.delete(admissions).where(notInArray(admissions.instance, db.select({ id: instances.id }).from(instances)));
    if (held.length > 0)
      await db
        .insert(admissions)
        .values([...held])
        .onConflictDoNothing();
  }

  return {
    beat: (instance, held) =>
      transaction(async () => {
        const [own] = await db
          .insert(instances)
          .values({ id: instance, beat: 1 })
          .onConflictDoUpdate({ target: instances.id, set: { beat: sql`${instances.beat} + 1` } })
          .returning();
        if (own?.beat === 1) await onListed(held);
        return await db.select().from(instances).orderBy(asc(instances.id));
      }),
    listInstances: async () => db.select().from(instances),
    remove: (dead) =>
      transaction(async () => {
        await db.delete(admissions).where(inArray(admissions.instance, [...dead]));
        await db.delete(instances).where(inArray(instances.id, [...dead]));
      }),
  };
}
