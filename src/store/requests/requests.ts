import { and, asc, between, desc, eq, gt, gte, inArray, isNull, lt, lte, ne, or, type SQL, sql } from "drizzle-orm";
import { findNames } from "../keys/subjects.ts";
import { columnFields } from "../../domain/request-fields.ts";
import { noFailure, usagePaths } from "../../domain/requests.ts";
import type { Engine } from "../engine/engine.ts";
import { sumRequests } from "./sums.ts";
import { changesOf, isStreamed, isUncounted, priorityOf, waitedForOf } from "./row.ts";
import type { LoggedRequest, RequestFilter, RequestLogStore, RequestPosition } from "./contract.ts";

/** The rows that one call looks at: about five milliseconds, in which no flush runs. */
const rowsPerScan = 2000;
/** Fewer if they are those of a key, or failures: each may be a page of its own. */
const apartRowsPerScan = 500;

/** A process whose flushes failed writes older requests after newer ones of another process. */
const lateMs = 10 * 60_000;

type LogTable = Engine["tables"]["requestLog"];

export function createRequestLogStore(engine: Engine): RequestLogStore {
  const { requestLog: log } = engine.tables;
  const selectFrom = prepareSelect(engine);

  /** The ids between which the filter's times and the position lie. */
  async function idRange({ since, until }: RequestFilter, before?: RequestPosition, after?: number): Promise<IdRange> {
    const ends = [before?.id, until === undefined ? undefined : await firstIdAt(engine, until + lateMs)];
    return {
      from: after === undefined ? since && (await firstIdAt(engine, since - lateMs)) : after + 1,
      to: ends.reduce((a, b) => (a === undefined || b === undefined ? (a ?? b) : Math.min(a, b))),
    };
  }

  return {
    async list(filter, limit, before, after) {
      const ids = await idRange(filter, before, after);
      const selective = selectiveCondition(log, filter);
      const end = isIndexed(filter) ? undefined : await findEnd(engine, selective, ids);
      const within = isWithin(log, { from: end?.id ?? ids.from, to: ids.to });
      const requests = await selectFrom(and(selective, within, ...conditions(log, filter)), limit);
      const last = requests.at(-1);
      const next = requests.length === limit && last !== undefined ? { endedAt: last.endedAt, id: last.id } : end;
      return { requests, next };
    },
    async sum(traits, filter, before) {
      const { since } = filter;
      // The end of each part tells when to stop, for less than a search of the first row.
      const ids = await idRange(before === undefined ? { until: filter.until } : {}, before);
      const selective = selectiveCondition(log, filter);
      const end = await findEnd(engine, selective, ids);
      const within = isWithin(log, { from: end?.id, to: ids.to });
      const sums = await sumRequests(engine, traits, and(selective, within, ...conditions(log, filter)));
      const isOver = end === undefined || (since !== undefined && end.endedAt < since - lateMs);
      return { sums, next: isOver ? undefined : end };
    },
    lastId: () => findLastId(engine),
    async oldest() {
      const { id, endedAt } = log;
      const [row] = await engine.db.select({ id, endedAt }).from(log).orderBy(asc(id)).limit(1);
      return row;
    },
    keyNames: async (ids) => (ids.length === 0 ? [] : await findNames(engine, ids)),
  };
}

async function findLastId({ db, tables: { requestLog: log } }: Engine): Promise<number> {
  const [row] = await db.select({ id: log.id }).from(log).orderBy(desc(log.id)).limit(1);
  return row?.id ?? 0;
}

/** From (inclusive) to (exclusive). */
interface IdRange {
  from: number | undefined;
  to: number | undefined;
}

/** One condition for each end: of two, SQLite would look only one up, and read all rows from there to the other. */
const isWithin = (log: LogTable, { from, to }: IdRange): SQL | undefined =>
  and(from === undefined ? undefined : gte(log.id, from), to === undefined ? undefined : lt(log.id, to));

/** The last row of the part of the log that one call looks at; undefined if that part is the rest. */
async function findEnd(
  { db, tables: { requestLog: log } }: Engine,
  selective: SQL | undefined,
  ids: IdRange,
): Promise<RequestPosition | undefined> {
  // The index has the id; a row of a key or a failure is a page of its own.
  const [last] = await db
    .select({ id: log.id })
    .from(log)
    .where(and(selective, isWithin(log, ids)))
    .orderBy(desc(log.id))
    .limit(1)
    .offset((selective === undefined ? rowsPerScan : apartRowsPerScan) - 1);
  if (last === undefined) return undefined;
  const [row] = await db.select({ endedAt: log.endedAt, id: log.id }).from(log).where(eq(log.id, last.id));
  return row;
}

/** The first id from a time on. Ids rise with time but for what a flush wrote late, which the margin allows for. */
async function firstIdAt(engine: Engine, time: number): Promise<number> {
  const { db } = engine;
  const { requestLog: log } = engine.tables;
  let [low, high] = [0, (await findLastId(engine)) + 1];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const [row] = await db
      .select({ id: log.id, endedAt: log.endedAt })
      .from(log)
      .where(gt(log.id, middle))
      .orderBy(asc(log.id))
      .limit(1);
    if (row === undefined || row.endedAt >= time) high = middle;
    else low = row.id;
  }
  return low + 1;
}

/** Whether an index finds exactly the rows that match, so that no row is looked at in vain. */
function isIndexed({ keyId, requestId, ...others }: RequestFilter): boolean {
  const indexed = [keyId, requestId].filter((value) => value !== undefined);
  return indexed.length < 2 && Object.values(others).every((value) => value === undefined);
}

/** Every row of that part of the log fulfils it, so that an index finds its end at once. */
function selectiveCondition(log: LogTable, filter: RequestFilter): SQL | undefined {
  const { requestId, keyId } = filter;
  if (requestId !== undefined) return eq(log.requestId, requestId);
  // Written out, as the partial index has it.
  if (isFailuresOnly(filter)) return sql`is_failed = 1`;
  return keyId === undefined ? undefined : eq(log.keyId, keyId);
}

const isFailuresOnly = ({ failed, outcome, status }: RequestFilter): boolean =>
  failed === true || (outcome !== undefined && outcome !== "completed") || (status !== undefined && status.from >= 400);

const exact = [
  "requestId",
  "keyId",
  "backend",
  "outcome",
  "path",
  "requestClass",
  "address",
  "conversation",
  "traceId",
] as const;

function conditions(log: LogTable, filter: RequestFilter): (SQL | undefined)[] {
  const { model, teamId, userId, status, failed, client, withoutUsage, minDurationMs, since, until } = filter;
  return [
    ...exact.map((name) => (filter[name] === undefined ? undefined : eq(log[name], filter[name]))),
    since === undefined ? undefined : gte(log.endedAt, since),
    until === undefined ? undefined : lt(log.endedAt, until),
    isOf(log.teamId, teamId),
    isOf(log.userId, userId),
    failed === true ? and(eq(log.isFailed, 1), ne(log.outcome, noFailure)) : undefined,
    withoutUsage === true ? lacksUsage(log) : undefined,
    model === undefined ? undefined : eq(log.modelSent, model),
    status === undefined ? undefined : and(gte(log.status, status.from), lte(log.status, status.to)),
    client === undefined ? undefined : or(eq(log.client, client), beginsWith(log.client, `${client}/`)),
    minDurationMs === undefined ? undefined : gte(log.durationUs, minDurationMs * 1000),
  ];
}

/** @param id 0: none */
const isOf = (column: LogTable["teamId" | "userId"], id: number | undefined): SQL | undefined =>
  id === undefined ? undefined : id === 0 ? isNull(column) : eq(column, id);

/** As `lacksUsage` of `domain/requests.ts`. */
const lacksUsage = (log: LogTable): SQL | undefined =>
  and(
    eq(log.inputTokens, 0),
    eq(log.outputTokens, 0),
    eq(log.outcome, "completed"),
    between(log.status, 200, 299),
    eq(log.method, "POST"),
    inArray(log.path, [...usagePaths]),
  );

/** Without the patterns of LIKE, and with regard to case on both engines. */
const beginsWith = (column: LogTable["client"], start: string): SQL =>
  sql`substr(${column}, 1, ${sql.raw(String(Array.from(start).length))}) = ${start}`;

function prepareSelect({ db, tables: { requestLog: log, keys, deletedKeys, subjects } }: Engine) {
  const nameOf = (id: LogTable["teamId" | "userId"]) =>
    sql<string | null>`coalesce((select ${subjects.name} from ${subjects} where ${subjects.id} = ${id}),
      (select ${deletedKeys.name} from ${deletedKeys} where ${deletedKeys.id} = -${id}))`;
  const names = { teamName: nameOf(log.teamId), userName: nameOf(log.userId) };
  return async (where: SQL | undefined, limit: number): Promise<LoggedRequest[]> => {
    const rows = await db
      .select({ row: log, keyName: sql<string | null>`coalesce(${keys.name}, ${deletedKeys.name})`, ...names })
      .from(log)
      .leftJoin(keys, eq(keys.id, log.keyId))
      .leftJoin(deletedKeys, eq(deletedKeys.id, log.keyId))
      .where(where)
      .orderBy(desc(log.id))
      .limit(limit);
    return rows.map(({ row, ...found }) => requestOf(row, found));
  };
}

function requestOf(
  row: LogTable["$inferSelect"],
  names: Pick<LoggedRequest, "keyName" | "teamName" | "userName">,
): LoggedRequest {
  const { id, flags } = row;
  const columns: Readonly<Record<string, string | number | null>> = row;
  const request: Record<string, unknown> = {
    id,
    ...names,
    streamed: isStreamed(flags),
    uncounted: isUncounted(flags),
    changes: changesOf(flags),
    waitedFor: waitedForOf(flags),
    priority: priorityOf(flags),
  };
  for (const { field, column, kind, name } of columnFields) {
    if (name === null) continue;
    const value = columns[column];
    request[field] = kind === "milliseconds" && typeof value === "number" ? value / 1000 : value;
  }
  return request as LoggedRequest;
}
