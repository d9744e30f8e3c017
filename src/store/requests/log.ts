import { and, eq, inArray, lt, lte, max, min, type SQLWrapper, sql } from "drizzle-orm";
import type { Usage } from "../../domain/usage.ts";
import { minutesPerDay, msPerMinute } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { requestColumns, withTokens } from "./row.ts";
import type { FlushedRequests, RequestLogLimits } from "./contract.ts";
import type { ResponseUsage } from "../usage/contract.ts";

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
  const findNewest = prepareFindId(engine, max);
  const deleteOld = preparePrune(engine, limits);
  let prunedAt = 0;
  let newestBefore: number | undefined;

  async function prune(now: number): Promise<void> {
    const newest = await findNewest();
    // Twice what was written, by whichever connection, so that a log that is too long gets shorter under any load.
    const written = Math.max(0, newest - (newestBefore ?? newest));
    newestBefore = newest;
    await deleteOld(now, minPruned + 2 * written);
  }

  return (now) => {
    if (now - prunedAt < pruneIntervalMs && now >= prunedAt) return [];
    prunedAt = now;
    return [() => prune(now)];
  };
}

/** The same for a log to which nothing may be written. @returns whether there may be more old rows */
export function prepareIdlePruning(engine: Engine, limits: RequestLogLimits): (now: number) => Promise<boolean> {
  const findOldest = prepareFindId(engine, min);
  const deleteOld = preparePrune(engine, limits);
  return async (now) => {
    const oldest = await findOldest();
    await deleteOld(now, minPruned);
    return (await findOldest()) - oldest >= minPruned;
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

/**
 * By age, then by number: ids rise by one for each row. The last row stays, so that its id does not come again, unless
 * nothing is logged any more.
 */
function preparePrune(
  { db, tables: { requestLog } }: Engine,
  { days, rows: maxRows }: RequestLogLimits,
): (now: number, count: number) => Promise<void> {
  const retentionMs = days * minutesPerDay * msPerMinute;
  const last = sql`(select max(id) from ${requestLog})`;
  const oldest = sql`(select id from ${requestLog} order by id limit cast(${sql.placeholder("count")} as bigint))`;
  const isOld = and(inArray(requestLog.id, oldest), days === 0 ? undefined : lt(requestLog.id, last));
  const isOutside = (endedAt: SQLWrapper) =>
    sql`${endedAt} not between ${sql.placeholder("from")} and ${sql.placeholder("to")}`;
  // What seems to be of the future goes with an old row after it. Else the clock may be behind, and the log be right.
  const lastOld = sql`(select max(id) from ${requestLog}
    where ${inArray(requestLog.id, oldest)} and ${requestLog.endedAt} < ${sql.placeholder("from")})`;
  const highest = sql`${last} - cast(${sql.placeholder("maxRows")} as bigint)`;
  // The first condition is that of the oldest row, so that nothing is read while that one stays.
  const oldestEnd = sql`(select ended_at from ${requestLog} order by id limit 1)`;
  const byAge = db
    .delete(requestLog)
    .where(and(isOutside(oldestEnd), isOld, sql`${requestLog.id} <= ${lastOld}`, isOutside(requestLog.endedAt)))
    .prepare();
  const byNumber = db
    .delete(requestLog)
    .where(and(sql`(select min(id) from ${requestLog}) <= ${highest}`, isOld, lte(requestLog.id, highest)))
    .prepare();
  return async (now, count) => {
    await byAge.execute({ from: now - retentionMs, to: now + maxAheadMs, count });
    await byNumber.execute({ maxRows, count });
  };
}

/** @returns finds the first or last id, 0 if there is none */
function prepareFindId({ db, tables: { requestLog } }: Engine, end: typeof min | typeof max): () => Promise<number> {
  const query = db
    .select({ id: end(requestLog.id) })
    .from(requestLog)
    .prepare();
  return async () => (await query.execute())[0]?.id ?? 0;
}
