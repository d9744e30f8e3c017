import { asc, eq, gt } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import type { RecordChange } from "../accounts/audit.ts";
import type { Engine } from "../engine/engine.ts";
import type { BackendStore } from "./contract.ts";

/** A process says every minute which file it uses; one that was killed is listed no longer than this. */
export const listedMs = 150_000;

export function createBackendStore({ db, tables }: Engine, clock: WallClock, record: RecordChange): BackendStore {
  const { drainingBackends, catalogInstances } = tables;
  const draining = db.select().from(drainingBackends).orderBy(asc(drainingBackends.backend)).prepare();

  const readOf = (name: string) => async () => ({
    draining: (await draining.execute()).some(({ backend }) => backend === name),
  });

  return {
    listDraining: async () => await draining.execute(),
    drain: (one, by) =>
      record(by, readOf(one.backend), async () => {
        await db.insert(drainingBackends).values(one).onConflictDoNothing();
      }),
    undrain: (backend, by) =>
      record(by, readOf(backend), async () => {
        await db.delete(drainingBackends).where(eq(drainingBackends.backend, backend));
      }),
    async usesFile({ name, fileHash }) {
      const said = { fileHash, seenAt: clock() };
      await db
        .insert(catalogInstances)
        .values({ name, ...said })
        .onConflictDoUpdate({ target: catalogInstances.name, set: said });
    },
    listFiles: async () =>
      await db
        .select({ name: catalogInstances.name, fileHash: catalogInstances.fileHash })
        .from(catalogInstances)
        .where(gt(catalogInstances.seenAt, clock() - listedMs))
        .orderBy(asc(catalogInstances.name)),
    async forgetInstance(name) {
      await db.delete(catalogInstances).where(eq(catalogInstances.name, name));
    },
  };
}
