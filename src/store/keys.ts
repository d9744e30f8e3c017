import { and, asc, count, eq, gt, sql } from "drizzle-orm";
import type { Engine } from "./engine.ts";
import type { KeyStore } from "./store.ts";

/** Prepared once, since it runs for each request of the proxy. */
export function prepareFindActiveKey({ db, find, tables: { keys } }: Engine): KeyStore["findActive"] {
  const query = db
    .select({ id: keys.id })
    .from(keys)
    .where(and(eq(keys.key, sql.placeholder("key")), eq(keys.isActive, true)))
    .limit(1)
    .prepare();
  return (key) => find(query, { key });
}

export function createKeyStore(engine: Engine): KeyStore {
  const { db, transaction } = engine;
  const { keys, deletedKeys } = engine.tables;

  return {
    findActive: prepareFindActiveKey(engine),
    async list(page) {
      const all = db.select().from(keys).orderBy(asc(keys.id)).$dynamic();
      return await (page === undefined ? all : all.where(gt(keys.id, page.after)).limit(page.limit));
    },
    async create({ name, key, createdAt }) {
      const [created] = await db
        .insert(keys)
        .values({ name, key, createdAt, isActive: true, requestCount: 0, inputTokens: 0, outputTokens: 0 })
        .onConflictDoNothing({ target: keys.key })
        .returning();
      return created ?? "collision";
    },
    async update(id, fields) {
      const [updated] = await db.update(keys).set(fields).where(eq(keys.id, id)).returning();
      return updated;
    },
    delete: (id) =>
      transaction(async () => {
        const [deleted] = await db.delete(keys).where(eq(keys.id, id)).returning({ id: keys.id, name: keys.name });
        if (deleted !== undefined) await db.insert(deletedKeys).values(deleted);
        return deleted?.name;
      }),
    async countActive() {
      const [row] = await db.select({ active: count() }).from(keys).where(eq(keys.isActive, true));
      return row?.active ?? 0;
    },
  };
}

/** The new `last_used_at` after a use at `usedAt`, epoch milliseconds. It moves at most once a minute. */
export const lastUsedAtAfter = (usedAt: ReturnType<typeof sql>, { keys }: Engine["tables"]): ReturnType<typeof sql> =>
  sql`case when ${keys.lastUsedAt} > ${usedAt} - 60000 then ${keys.lastUsedAt} else ${usedAt} end`;
