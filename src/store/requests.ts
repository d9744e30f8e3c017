import { and, asc, desc, eq, gt, gte, inArray, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { Engine } from "./engine.ts";
import { changesOf, isStreamed } from "./request-row.ts";
import type { LoggedRequest, RequestFilter, RequestLogStore, RequestPosition } from "./request-log-store.ts";

/** The rows that one call looks at: about five milliseconds, in which no flush runs. */
const rowsPerScan = 2000;

type LogTable = Engine["tables"]["requestLog"];

export function createRequestLogStore(engine: Engine): RequestLogStore {
  const { db } = engine;
  const { requestLog: log } = engine.tables;
  const selectFrom = prepareSelect(engine);

  /** The last row of the part of the log that one call looks at; undefined if that part is the rest. */
  async function findEnd(range: SQL | undefined): Promise<RequestPosition | undefined> {
    const [row] = await db
      .select({ endedAt: log.endedAt, id: log.id })
      .from(log)
      .where(range)
      .orderBy(desc(log.endedAt), desc(log.id))
      .limit(1)
      .offset(rowsPerScan - 1);
    return row;
  }

  return {
    async list(filter, limit, before) {
      const range = and(...indexedConditions(log, filter), before && isBefore(log, before));
      const end = await findEnd(range);
      const scanned = and(range, end && or(gt(log.endedAt, end.endedAt), isAt(log, end)));
      const requests = await selectFrom(and(scanned, ...conditions(log, filter)), limit);
      const last = requests.at(-1);
      const next = requests.length === limit && last !== undefined ? { endedAt: last.endedAt, id: last.id } : end;
      return { requests, next };
    },
    async listAfter(id, filter, limit) {
      return await selectFrom(
        and(gt(log.id, id), ...indexedConditions(log, filter), ...conditions(log, filter)),
        limit,
        true,
      );
    },
    async lastId() {
      const [row] = await db.select({ id: log.id }).from(log).orderBy(desc(log.id)).limit(1);
      return row?.id ?? 0;
    },
    async keyNames(ids) {
      if (ids.length === 0) return [];
      const { keys, deletedKeys } = engine.tables;
      const deleted = await db
        .select()
        .from(deletedKeys)
        .where(inArray(deletedKeys.id, [...ids]));
      const existing = await db
        .select({ id: keys.id, name: keys.name })
        .from(keys)
        .where(inArray(keys.id, [...ids]));
      return [...deleted, ...existing].map(({ id, name }) => [id, name]);
    },
  };
}

const isBefore = (log: LogTable, { endedAt, id }: RequestPosition): SQL | undefined =>
  and(lte(log.endedAt, endedAt), or(lt(log.endedAt, endedAt), lt(log.id, id)));

const isAt = (log: LogTable, { endedAt, id }: RequestPosition): SQL | undefined =>
  and(eq(log.endedAt, endedAt), gte(log.id, id));

/** Conditions that one index serves: every row of that part of the log fulfils them, so that its end is found at once. */
function indexedConditions(log: LogTable, filter: RequestFilter): (SQL | undefined)[] {
  const { since, until } = filter;
  return [
    selectiveCondition(log, filter),
    since === undefined ? undefined : gte(log.endedAt, since),
    until === undefined ? undefined : lt(log.endedAt, until),
  ];
}

function selectiveCondition(log: LogTable, filter: RequestFilter): SQL | undefined {
  const { requestId, keyId } = filter;
  if (requestId !== undefined) return eq(log.requestId, requestId);
  // Written out, as the partial index has it.
  if (isFailuresOnly(filter)) return sql`is_failed = 1`;
  return keyId === undefined ? undefined : eq(log.keyId, keyId);
}

const isFailuresOnly = ({ failed, outcome, status }: RequestFilter): boolean =>
  failed === true || (outcome !== undefined && outcome !== "completed") || (status !== undefined && status.from >= 400);

function conditions(log: LogTable, filter: RequestFilter): (SQL | undefined)[] {
  const { keyId, model, status, outcome, failed, path, address, minDurationMs } = filter;
  return [
    keyId === undefined ? undefined : eq(log.keyId, keyId),
    failed === true ? eq(log.isFailed, 1) : undefined,
    model === undefined ? undefined : eq(log.modelSent, model),
    status === undefined ? undefined : and(gte(log.status, status.from), lte(log.status, status.to)),
    outcome === undefined ? undefined : eq(log.outcome, outcome),
    path === undefined ? undefined : eq(log.path, path),
    address === undefined ? undefined : eq(log.address, address),
    minDurationMs === undefined ? undefined : gte(log.durationUs, minDurationMs * 1000),
  ];
}

function prepareSelect({ db, tables: { requestLog: log, keys, deletedKeys } }: Engine) {
  return async (where: SQL | undefined, limit: number, isAscending = false): Promise<LoggedRequest[]> => {
    const order = isAscending ? [asc(log.id)] : [desc(log.endedAt), desc(log.id)];
    const rows = await db
      .select({ row: log, keyName: sql<string | null>`coalesce(${keys.name}, ${deletedKeys.name})` })
      .from(log)
      .leftJoin(keys, eq(keys.id, log.keyId))
      .leftJoin(deletedKeys, eq(deletedKeys.id, log.keyId))
      .where(where)
      .orderBy(...order)
      .limit(limit);
    return rows.map(({ row, keyName }) => requestOf(row, keyName));
  };
}

function requestOf(row: LogTable["$inferSelect"], keyName: string | null): LoggedRequest {
  const { flags, queueUs, upstreamUs, firstByteUs, durationUs, isFailed: _isFailed, ...rest } = row;
  return {
    ...rest,
    keyName,
    streamed: isStreamed(flags),
    changes: changesOf(flags),
    queueMs: milliseconds(queueUs),
    upstreamMs: milliseconds(upstreamUs),
    firstByteMs: milliseconds(firstByteUs),
    durationMs: durationUs / 1000,
  };
}

const milliseconds = (us: number | null): number | null => (us === null ? null : us / 1000);
