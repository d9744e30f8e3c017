import { and, eq, inArray, lt, lte, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { minutesPerDay, msPerMinute } from "../../time/seoul.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { keyIdOf, requestColumns, withTokens } from "./row.ts";
import type { FlushedRequests, RequestAmendment, RequestLogLimits } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import { mapCounters, type Usage, type ResponseUsage, responseRef, usageFields } from "../../domain/usage.ts";

/** Statements that write the request log as part of a flush. @param added the tokens that each of `responses` adds */
type WriteRequestLog = (
  requests: FlushedRequests | undefined,
  added: readonly Usage[],
  responses: readonly ResponseUsage[],
) => Statement[];

/** What seems to have ended later than this was logged while a clock was ahead. */
const maxAheadMs = minutesPerDay * msPerMinute;
/** Among so many of the oldest rows one is looked for that tells how far they are old. */
const rowsAhead = 500;

export function prepareRequestLog(engine: Engine): WriteRequestLog {
  const insert = engine.prepareInsert(engine.tables.requestLog, requestColumns);
  const amend = prepareAmend(engine);
  const end = prepareEnds(engine);
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
    const { ends, others } = splitEnds(requests.amendments);
    const amendments = others.map((one) => amend({ ...one, ...tokensOf(one.keyId, one.responseId) }));
    return [...(rows.length === 0 ? [] : [insert(rows)]), ...(ends.length === 0 ? [] : [end(ends)]), ...amendments];
  };
}

// Amended rows are found by their request's id. Without the plus before `key_id`, SQLite goes through all rows of the key.

type End = RequestAmendment & Required<Pick<RequestAmendment, "end">>;

/** @returns those that only say when a request ended, one for each id, and all others */
function splitEnds(amendments: readonly RequestAmendment[]): { ends: End[]; others: RequestAmendment[] } {
  const ends = new Map<string, End>();
  const others: RequestAmendment[] = [];
  for (const one of amendments) {
    const { end, keyId, requestId } = one;
    const ref = `${keyId} ${requestId}`;
    if (end === undefined || ends.has(ref)) others.push(one);
    else ends.set(ref, { ...one, end });
  }
  return { ends: [...ends.values()], others };
}

/** Writes any number in one statement: where commits take long, nearly every request ends long after it was counted. */
function prepareEnds({ db, jsonRows, byIndex, tables: { requestLog } }: Engine): (ends: readonly End[]) => Statement {
  const { endedAt, durationUs, responseBytes } = requestLog;
  const column = (position: number): SQL => sql`cast(value->>${sql.raw(String(position))} as bigint)`;
  const update = db
    .update(requestLog)
    .set({
      endedAt: sql`${endedAt} + (ended.duration_us - ${durationUs}) / 1000`,
      durationUs: sql`ended.duration_us`,
      responseBytes: sql`coalesce(ended.response_bytes, ${responseBytes})`,
    })
    .from(
      sql`(select ${column(3)} as duration_us, ${column(4)} as response_bytes, (select max(id) from ${requestLog}
        where request_id = value->>0 and +key_id = ${column(1)} and duration_us = ${column(2)}) as row_id
        from ${jsonRows(sql.placeholder("rows"))}) as ended`,
    )
    .where(byIndex(requestLog.id, sql`ended.row_id`))
    .prepare();
  return (ends) => {
    const rows = ends.map(({ requestId, keyId, end }) => [
      requestId,
      keyId,
      end.writtenUs,
      end.durationUs,
      end.responseBytes ?? null,
    ]);
    return () => update.execute({ rows: JSON.stringify(rows) });
  };
}

function prepareAmend({ db, tables: { requestLog } }: Engine) {
  const { endedAt, durationUs, responseBytes } = requestLog;
  const placed = (name: string): SQL => sql`cast(${sql.placeholder(name)} as bigint)`;
  const update = db
    .update(requestLog)
    .set(
      Object.assign(
        mapCounters(usageFields, (field) => {
          const added = placed(field);
          return sql`coalesce(coalesce(${requestLog[field]}, 0) + ${added}, ${requestLog[field]})`;
        }),
        {
          endedAt: sql`${endedAt} + coalesce(${placed("durationUs")} - ${durationUs}, 0) / 1000`,
          durationUs: sql`coalesce(${placed("durationUs")}, ${durationUs})`,
          responseBytes: sql`coalesce(${placed("responseBytes")}, ${responseBytes})`,
        },
      ),
    )
    .where(
      eq(
        requestLog.id,
        sql`(select max(id) from ${requestLog} where request_id = ${sql.placeholder("requestId")}
          and +key_id = ${sql.placeholder("keyId")} and duration_us = coalesce(${placed("writtenUs")}, duration_us))`,
      ),
    )
    .prepare();
  return ({ requestId, keyId, end, ...usage }: RequestAmendment): Statement =>
    () =>
      update.execute({
        requestId,
        keyId,
        ...mapCounters(usageFields, (field) => usage[field] ?? null),
        writtenUs: end?.writtenUs ?? null,
        durationUs: end?.durationUs ?? null,
        responseBytes: end?.responseBytes ?? null,
      });
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
  const retentionMs = days * minutesPerDay * msPerMinute;
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
