import { asc, inArray, sql } from "drizzle-orm";
import type { Engine } from "./engine.ts";
import type { LimitStore } from "./limit-store.ts";

/** The processes that hold admissions. What a dead one held is given back by the others. */
export function prepareInstances({
  db,
  transaction,
  tables,
}: Engine): Pick<LimitStore, "beat" | "listInstances" | "remove"> {
  const { admissions, instances } = tables;
  return {
    beat: (instance, held) =>
      transaction(async () => {
        const [own] = await db
          .insert(instances)
          .values({ id: instance, beat: 1 })
          .onConflictDoUpdate({ target: instances.id, set: { beat: sql`${instances.beat} + 1` } })
          .returning();
        // The others took it for dead, such as after a long stop of the machine.
        if (own?.beat === 1 && held.length > 0)
          await db
            .insert(admissions)
            .values([...held])
            .onConflictDoNothing();
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
