import { and, asc, eq, getTableColumns, gt, isNull, or } from "drizzle-orm";
import { timestampOf } from "../../time/seoul.ts";
import type { Engine } from "../engine/engine.ts";
import type { RecordChange } from "./audit.ts";
import type { ApiToken, TokenStore } from "./contract.ts";

export function createTokenStore({ db, tables: { apiTokens } }: Engine, record: RecordChange): TokenStore {
  const { hash: _hash, ...columns } = getTableColumns(apiTokens);
  const hasId = (id: number) => eq(apiTokens.id, id);
  const stateOf = async (token: ApiToken | undefined) => {
    if (token === undefined) return {};
    const { head, name, role, expiresAt } = token;
    return { head, name, role, expires_at: expiresAt === null ? null : timestampOf(expiresAt) };
  };

  return {
    async find(hash, now) {
      const isLive = or(isNull(apiTokens.expiresAt), gt(apiTokens.expiresAt, now));
      return (
        await db
          .select(columns)
          .from(apiTokens)
          .where(and(eq(apiTokens.hash, hash), isLive))
          .limit(1)
      )[0];
    },
    create: (token, by) =>
      record(by, stateOf, async () => {
        const [created] = await db.insert(apiTokens).values(token).returning({ id: apiTokens.id });
        const { hash: _, ...fields } = token;
        return { ...fields, id: Number(created?.id), lastUsedAt: null };
      }),
    list: async () => await db.select(columns).from(apiTokens).orderBy(asc(apiTokens.id)),
    async use(id, lastUsedAt) {
      await db.update(apiTokens).set({ lastUsedAt }).where(hasId(id));
    },
    delete: (id, by) =>
      record(
        by,
        async () => stateOf((await db.select(columns).from(apiTokens).where(hasId(id)).limit(1))[0]),
        async () => (await db.delete(apiTokens).where(hasId(id)).returning({ id: apiTokens.id })).length > 0,
      ),
  };
}
