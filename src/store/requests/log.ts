import { and, inArray, lt, lte, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { msPerDay } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { keyIdOf, requestColumns, withTokens } from "./row.ts";
import type { FlushedRequests, RequestAmendment, RequestLogLimits } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import {
  mapCounters,
  type Usage,
  type ResponseUsage,
  responseRef,
  snakeCase,
  usageFields,
} from "../../domain/usage.ts";

/** Statements that write the request log as part of a flush. @param added the tokens that each of `responses` adds */
type WriteRequestLog = (
  requests: FlushedRequests | undefined,
  added: readonly Usage[],
  responses: readonly ResponseUsage[],
) => Statement[];

/** What seems to have ended later than this was logged while a clock was ahead. */
const maxAheadMs = msPerDay;
/** Among so many of the oldest rows one is looked for that tells how far they are old. */
const rowsAhead = 500;

export function prepareRequestLog(engine: Engine): WriteRequestLog {
  const insert = engine.prepareInsert(engine.tables.requestLog, requestColumns);
  const amend = prepareAmend(engine);
  return (requests, added, responses) => {
    if (requests === undefined) return [];
    const reads = responses.flatMap((one, index) =>
      one.as === undefined ? [[responseRef(one.keyId, one.responseId), added[index]] as const] : [],
    );
    const tokens = new Map(reads);
    const tokensOf = (keyId: KeyId, responseId: string | null): Usage | undefined =>
      responseId === null ? undefined : tokens.get(responseRef(keyId, responseId));
    const rows = requests.rows.map((row) => {
      const counted = tokensOf(Number(keyIdOf(row)), row.responseId);
      const values = counted === undefined ? row.values : withTokens(row.values, counted);
      // The version before has staged rows without the last columns.
      return requestColumns.map((_, at) => values[at] ?? null);
    });
    const amendments = requests.amendments.map((one) => Object.assign({}, one, tokensOf(one.keyId, one.responseId)));
    return [...(rows.length === 0 ? [] : [insert(rows)]), ...amend(amendments)];
  };
}

/**
 * Corrects any number of rows in one statement: where commits take long, nearly every request ends long after it was
 * counted. What comes several times for one request takes as many.
 */
function prepareAmend({ db, jsonRows, byIndex, tables: { requestLog } }: Engine) {
  const { endedAt, durationUs, responseBytes } = requestLog;
  const given = (position: number): SQL => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const amended = (name: string): SQL => sql.raw(`amended.${name}`);
  const tokens = usageFields.map((field, index) => sql`${given(5 + index)} as ${sql.raw(snakeCase(field))}`);
  // A row is found by its request's id. Without the plus before `key_id`, SQLite goes through all rows of the key.
  const rows = sql`(select ${given(3)} as ended_us, ${given(4)} as bytes, ${sql.join(tokens, sql`, `)},
      (select max(id) from ${requestLog} where request_id = value->>0 and +key_id = ${given(1)}
        and duration_us = coalesce(${given(2)}, duration_us)) as row_id
      from ${jsonRows(sql.placeholder("rows"))}) as amended`;
  const update = db
    .update(requestLog)
    .set(
      Object.assign(
        mapCounters(usageFields, (field) => {
          const added = amended(snakeCase(field));
          return sql`coalesce(coalesce(${requestLog[field]}, 0) + ${added}, ${requestLog[field]})`;
        }),
        {
          endedAt: sql`${endedAt} + coalesce(${amended("ended_us")} - ${durationUs}, 0) / 1000`,
          durationUs: sql`coalesce(${amended("ended_us")}, ${durationUs})`,
          responseBytes: sql`coalesce(${amended("bytes")}, ${responseBytes})`,
        },
      ),
    )
    .from(rows)
    .where(byIndex(requestLog.id, amended("row_id")))
    .prepare();
  return (amendments: readonly RequestAmendment[]): Statement[] =>
    inRounds(amendments).map((round) => {
      const values = round.map(({ requestId, keyId, end, ...usage }) => [
        requestId,
        keyId,
        end?.writtenUs,
        end?.durationUs,
        end?.responseBytes,
        ...usageFields.map((field) => (end === undefined ? usage[field] : undefined)),
      ]);
      return () => update.execute({ rows: JSON.stringify(values) });
    });
}

/** Each has at most one of a request. */
function inRounds(amendments: readonly RequestAmendment[]): RequestAmendment[][] {
  const counts = new Map<string, number>();
  const rounds: RequestAmendment[][] = [];
  for (const one of amendments) {
    const ref = `${one.keyId} ${one.requestId}`;
    const before = counts.get(ref) ?? 0;
    counts.set(ref, before + 1);
    (rounds[before] ??= []).push(one);
  }
  return rounds;
}

/**
 * Deletes by age, then by number, which ids tell: they rise by one for each row. Each looks at the `count` oldest rows. The
 * last row stays, so that its id does not come again, unless nothing is logged any more.
 * @returns how many rows it has deleted
 */
export function prepareRequestLogDeletion(
  { db, tables: { requestLog } }: Engine,
  { days, rows: maxRows }: RequestLogLimits,
): (now: number, count: number) => Promise<number> {
  const retentionMs = days * msPerDay;
  const last = sql`(select max(id) from ${requestLog})`;
  const oldest = (count: SQL): SQL => sql`(select id from ${requestLog} order by id limit ${count})`;
  const counted = oldest(sql`cast(${sql.placeholder("count")} as bigint)`);
  const isOld = and(inArray(requestLog.id, counted), days === 0 ? undefined : lt(requestLog.id, last));
  const isOutside = (endedAt: SQLWrapper) =>
    sql`${endedAt} not between ${sql.placeholder("from")} and ${sql.placeholder("to")}`;
  // What seems to be of the future goes with an old row after it. Else the clock may be behind, and the log be right.
  const lastOld = sql`(select max(id) from ${requestLog}
    where ${inArray(requestLog.id, oldest(sql.raw(String(rowsAhead))))} and ${requestLog.endedAt} < ${sql.placeholder("from")})`;
  const highest = sql`${last} - cast(${sql.placeholder("maxRows")} as bigint)`;
  // The first condition is that of the oldest row, so that nothing is read while that one stays.
  const oldestEnd = sql`(select ended_at from ${requestLog} order by id limit 1)`;
  const byAge = db
    .delete(requestLog)
    .where(and(isOutside(oldestEnd), isOld, sql`${requestLog.id} <= ${lastOld}`, isOutside(requestLog.endedAt)))
    .returning({ id: requestLog.id })
    .prepare();
  const byNumber = db
    .delete(requestLog)
    .where(and(sql`(select min(id) from ${requestLog}) <= ${highest}`, isOld, lte(requestLog.id, highest)))
    .returning({ id: requestLog.id })
    .prepare();
  return async (now, count) => {
    const old = await byAge.execute({ from: now - retentionMs, to: now + maxAheadMs, count });
    const excess = await byNumber.execute({ maxRows, count });
    return old.length + excess.length;
  };
}
