import { and, eq, inArray, lt, lte, max, type SQLWrapper, sql } from "drizzle-orm";
import type { Usage } from "../domain.ts";
import { minutesPerDay, msPerMinute } from "../time/seoul.ts";
import type { Engine, Statement } from "./engine.ts";
import { requestColumns, withTokens } from "./request-row.ts";
import type { FlushedRequests, RequestLogLimits } from "./request-log-store.ts";
import type { ResponseUsage } from "./usage-store.ts";

/** Statements that write the request log as part of a flush. @param added the tokens that each of `responses` adds */
type WriteRequestLog = (
  requests: FlushedRequests | undefined,
  added: readonly Usage[],
  responses: readonly ResponseUsage[],
) => Statement[];

const pruneIntervalMs = 1000;
const minPruned = 500;
/** What seems to have ended later than this was logged while a clock was ahead. */
const maxAheadMs = minutesPerDay * msPerMinute;

export function prepareRequestLog(engine: Engine): WriteRequestLog {
  const insert = engine.prepareInsert(engine.tables.requestLog, requestColumns);
  const amend = prepareAmend(engine);
  return (requests, added, responses) => {
    if (requests === undefined) return [];
    const tokens = new Map(responses.map(({ responseId }, index) => [responseId, added[index]]));
    const tokensOf = (id: string | null): Usage | undefined => (id === null ? undefined : tokens.get(id));
    const rows = requests.rows.map(({ values, responseId }) => {
      const counted = tokensOf(responseId);
      return counted === undefined ? values : withTokens(values, counted);
    });
    const amendments = requests.amendments.map((one) => amend({ ...one, ...tokensOf(one.responseId) }));
    return [...(rows.length === 0 ? [] : [insert(rows)]), ...amendments];
  };
}

/** @returns statements that delete a bounded number of old rows, at most once a second */
export function prepareRequestLogPruning(engine: Engine, limits: RequestLogLimits): (now: number) => Statement[] {
  const findNewest = prepareFindNewest(engine);
  const deleteOld = preparePrune(engine);
  const retentionMs = limits.days * minutesPerDay * msPerMinute;
  let prunedAt = 0;
  let newestBefore: number | undefined;

  async function prune(now: number): Promise<void> {
    const newest = await findNewest();
    // Twice what was written, by whichever connection, so that a log that is too long gets shorter under any load.
    const count = minPruned + 2 * (newest - (newestBefore ?? newest));
    newestBefore = newest;
    await deleteOld({ from: now - retentionMs, to: now + maxAheadMs, maxRows: limits.rows, count });
  }

  return (now) => {
    if (now - prunedAt < pruneIntervalMs && now >= prunedAt) return [];
    prunedAt = now;
    return [() => prune(now)];
  };
}

function prepareAmend({ db, tables: { requestLog } }: Engine) {
  const { inputTokens, outputTokens, cachedInputTokens, reasoningTokens } = requestLog;
  const update = db
    .update(requestLog)
    .set({
      inputTokens: sql`coalesce(${inputTokens}, 0) + cast(${sql.placeholder("input")} as bigint)`,
      outputTokens: sql`coalesce(${outputTokens}, 0) + cast(${sql.placeholder("output")} as bigint)`,
      cachedInputTokens: sql`coalesce(${cachedInputTokens}, 0) + cast(${sql.placeholder("cached")} as bigint)`,
      reasoningTokens: sql`coalesce(${reasoningTokens}, 0) + cast(${sql.placeholder("reasoning")} as bigint)`,
    })
    .where(
      eq(
        requestLog.id,
        sql`(select max(id) from ${requestLog} where request_id = ${sql.placeholder("requestId")}
          and key_id = ${sql.placeholder("keyId")})`,
      ),
    )
    .prepare();
  return ({ requestId, keyId, ...usage }: Usage & { requestId: string; keyId: number }): Statement =>
    () =>
      update.execute({
        requestId,
        keyId,
        input: usage.inputTokens,
        output: usage.outputTokens,
        cached: usage.cachedInputTokens ?? 0,
        reasoning: usage.reasoningTokens ?? 0,
      });
}

interface Pruned {
  /** Only what ended between these times is kept. */
  from: number;
  to: number;
  maxRows: number;
  count: number;
}

/** By age, then by number: ids rise by one for each row. The last row stays, so that its id does not come again. */
function preparePrune({ db, tables: { requestLog } }: Engine): (pruned: Pruned) => Promise<void> {
  const last = sql`(select max(id) from ${requestLog})`;
  const oldest = sql`(select id from ${requestLog} order by id limit cast(${sql.placeholder("count")} as bigint))`;
  const isOld = and(inArray(requestLog.id, oldest), lt(requestLog.id, last));
  const isOutside = (endedAt: SQLWrapper) =>
    sql`${endedAt} not between ${sql.placeholder("from")} and ${sql.placeholder("to")}`;
  const highest = sql`${last} - cast(${sql.placeholder("maxRows")} as bigint)`;
  // The first condition is that of the oldest row, so that nothing is read while that one stays.
  const oldestEnd = sql`(select ended_at from ${requestLog} order by id limit 1)`;
  const byAge = db
    .delete(requestLog)
    .where(and(isOutside(oldestEnd), isOld, isOutside(requestLog.endedAt)))
    .prepare();
  const byNumber = db
    .delete(requestLog)
    .where(and(sql`(select min(id) from ${requestLog}) <= ${highest}`, isOld, lte(requestLog.id, highest)))
    .prepare();
  return async ({ from, to, maxRows, count }) => {
    await byAge.execute({ from, to, count });
    await byNumber.execute({ maxRows, count });
  };
}

function prepareFindNewest({ db, tables: { requestLog } }: Engine): () => Promise<number> {
  const query = db
    .select({ id: max(requestLog.id) })
    .from(requestLog)
    .prepare();
  return async () => (await query.execute())[0]?.id ?? 0;
}
