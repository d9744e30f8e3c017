import { and, count, desc, gt, gte, isNotNull, lt, type SQL, sql } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";
import type { CacheGroup, CachePage, RequestPosition } from "./contract.ts";
import { bitOf } from "./row.ts";
import { findLastId, lateMs, rowsPerScan } from "./scan.ts";

/** The input of a row that came from a cache, and what of it is reported beside the input. */
export function fromCache(log: Engine["tables"]["requestLog"]): Record<"cached" | "apart", SQL> {
  const cached = sql`coalesce(${log.cachedInputTokens}, 0)`;
  return { cached, apart: sql`case when substr(${log.path}, 1, 12) = '/v1/messages' then ${cached} else 0 end` };
}

/** Adds up the latest part of the log before a position, down to a time. */
export function prepareCacheSums(engine: Engine) {
  const { db } = engine;
  const { requestLog: log } = engine.tables;
  const groups = { key: log.keyId, model: log.modelSent, client: log.client, conversation: log.conversation } as const;
  const { cached, apart } = fromCache(log);
  const isMended = sql`case when (${log.flags} & ${sql.raw(String(bitOf("drop_billing_line")))}) = 0 then 0 else 1 end`;

  return async (by: CacheGroup, since: number, before?: RequestPosition): Promise<CachePage> => {
    const to = before?.id ?? (await findLastId(engine)) + 1;
    const from = to - rowsPerScan;
    const of = groups[by];
    const sums = await db
      .select({
        of: sql`${of}`.mapWith(by === "key" || by === "conversation" ? Number : String),
        requestCount: count(),
        inputTokens: sql`sum(${log.inputTokens} + ${apart})`.mapWith(Number),
        cachedTokens: sql`sum(${cached})`.mapWith(Number),
        lostCount: count(log.cacheLoss),
        mendedCount: sql`sum(${isMended})`.mapWith(Number),
      })
      .from(log)
      .where(and(gte(log.id, from), lt(log.id, to), gte(log.endedAt, since), gt(log.inputTokens, 0), isNotNull(of)))
      .groupBy(of);
    const [earlier] = await db
      .select({ id: log.id, endedAt: log.endedAt })
      .from(log)
      .where(lt(log.id, from))
      .orderBy(desc(log.id))
      .limit(1);
    const isOver = earlier === undefined || earlier.endedAt < since - lateMs;
    return { sums, next: isOver ? undefined : { id: from, endedAt: earlier.endedAt } };
  };
}
