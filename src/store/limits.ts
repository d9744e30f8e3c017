import { and, eq, gt, inArray, lt, type SQL, sql } from "drizzle-orm";
import type { AdmissionId, KeyId, LimitName } from "../domain.ts";
import { dayNumberOf, monthOf, startOfDayNumber } from "../time/seoul.ts";
import type { WallClock } from "../time/clock.ts";
import type { Engine, Statement } from "./engine.ts";
import { prepareInstances } from "./instances.ts";
import { prepareLoads } from "./key-loads.ts";
import {
  addRequest,
  findExceeded,
  holdsPlace,
  isOfTokens,
  type KeyLoad,
  minuteFreesAt,
  usedOf,
  windowSeconds,
} from "./limit-windows.ts";
import type { AdmissionBatch, AdmissionRequest, AdmissionResult, LimitStore } from "./limit-store.ts";
import type { UsageIncrement } from "./usage-store.ts";

/** How soon a client may try again whose request waits for others of its key to end. */
const placeWaitMs = 1000;

export function createLimitStore(engine: Engine, clock: WallClock): LimitStore {
  const { db, transaction, lock, pipeline, tables } = engine;
  const { keyRefusals } = tables;
  const loads = prepareLoads(engine);
  const writes = prepareWrites(engine);
  let prunedMinute = 0;

  /** When a refused request may be admitted. */
  async function waitOf({ keyId, limits, tokens }: AdmissionRequest, name: LimitName, load: KeyLoad, now: number) {
    const limit = limits[name] ?? 0;
    const added = isOfTokens(name) ? Math.min(tokens, limit) : 1;
    const excess = usedOf(load, name) + added - limit;
    const freesAt = async (): Promise<number | undefined> => {
      if (name === "max_concurrency") return undefined;
      if (name === "requests_per_minute") return minuteFreesAt(await loads.seconds(keyId, now), "requests", excess);
      if (name === "tokens_per_minute") return minuteFreesAt(await loads.seconds(keyId, now), "tokens", excess);
      // Without the reserved tokens it may fit.
      if (excess <= load.reserved) return undefined;
      const isDay = name === "tokens_per_day";
      return startOfDayNumber(isDay ? dayNumberOf(now) + 1 : monthOf(now).nextFirstDay);
    };
    const at = await freesAt();
    return at === undefined ? placeWaitMs : Math.max(1, at - now);
  }

  async function decide(requests: readonly AdmissionRequest[], now: number): Promise<AdmissionResult[]> {
    const byKey = await loads.ofRequests(requests, now);
    const results: AdmissionResult[] = [];
    for (const request of requests) {
      const load = byKey(request.keyId);
      const refusedBy = findExceeded(load, request.limits, request.tokens);
      if (refusedBy === undefined) addRequest(load, request.tokens);
      const waitMs = refusedBy === undefined ? 0 : await waitOf(request, refusedBy, load, now);
      results.push({ load: { ...load }, refusedBy, waitMs });
    }
    return results;
  }

  function prune(now: number): Statement[] {
    const minute = Math.floor(now / 60_000);
    if (minute === prunedMinute) return [];
    prunedMinute = minute;
    return writes.prune(now);
  }

  async function admit({ instance, requests, ended }: AdmissionBatch): Promise<AdmissionResult[]> {
    if (ended.length > 0) await writes.giveBack(ended)();
    if (requests.length === 0) return [];
    // Read after the lock, so that no two instances give away the same place.
    await lock("admissions");
    const now = clock();
    const results = await decide(requests, now);
    const isAdmitted = (_: AdmissionRequest, index: number): boolean => results[index]?.refusedBy === undefined;
    const admitted = requests.filter(isAdmitted);
    const refused = requests.filter((request, index) => !isAdmitted(request, index));
    await pipeline([
      ...writes.hold(
        admitted.filter(({ limits }) => holdsPlace(limits)),
        instance,
      ),
      ...writes.countRequests(admitted, now),
      ...writes.countRefusals(refused, now),
      ...prune(now),
    ]);
    return results;
  }

  return {
    admit: (batch) => transaction(() => admit(batch)),
    async listLoads(keyIds) {
      const now = clock();
      const byKey = await loads.ofKeys(keyIds, now);
      const today = and(eq(keyRefusals.day, dayNumberOf(now)), inArray(keyRefusals.keyId, [...keyIds]));
      const refusals = await db.select().from(keyRefusals).where(today);
      const refusedOf = new Map(refusals.map(({ keyId, requests }) => [keyId, requests]));
      return keyIds.map((keyId) => ({ keyId, ...byKey(keyId), refusedToday: refusedOf.get(keyId) ?? 0 }));
    },
    listDays: loads.listDays,
    ...prepareInstances(engine),
    ...prepareEndings(engine, clock),
  };
}

type Row = readonly (number | string)[];

/** All rows of a statement are passed as one JSON parameter, sorted, so that concurrent writers lock them in one order. */
const jsonOf = (rows: readonly Row[]): string =>
  JSON.stringify(rows.toSorted(([a = 0], [b = 0]) => Number(a) - Number(b)));

const integerAt = (position: number): SQL => sql`cast(value->>${sql.raw(String(position))} as bigint)`;

/** The statements that change what counts. Lists are empty if there is nothing to write. */
function prepareWrites(engine: Engine) {
  const { db, tables, jsonRows } = engine;
  const { admissions, keySeconds, keyRefusals } = tables;
  const rows = jsonRows(sql.placeholder("rows"));
  // Without "where true", SQLite takes the "on" of "on conflict" for a join's.
  const hold = db
    .insert(admissions)
    .select(sql`select ${integerAt(0)}, value->>1, ${integerAt(2)}, ${integerAt(3)} from ${rows} where true`)
    .onConflictDoNothing()
    .prepare();
  const addSeconds = prepareAddSeconds(engine);
  const addRefusals = db
    .insert(keyRefusals)
    .select(sql`select ${integerAt(1)}, ${integerAt(0)}, count(*) from ${rows} where true group by 1, 2 order by 1, 2`)
    .onConflictDoUpdate({
      target: [keyRefusals.day, keyRefusals.keyId],
      set: { requests: sql`${keyRefusals.requests} + excluded.requests` },
    })
    .prepare();
  const second = sql.placeholder("second");
  const pruneSeconds = db.delete(keySeconds).where(lt(keySeconds.second, second)).prepare();
  const pruneRefusals = db
    .delete(keyRefusals)
    .where(lt(keyRefusals.day, sql.placeholder("day")))
    .prepare();

  const ifAny = (list: readonly Row[], statement: { execute(values: { rows: string }): PromiseLike<unknown> }) =>
    list.length === 0 ? [] : [() => statement.execute({ rows: jsonOf(list) })];

  return {
    giveBack: prepareGiveBack(engine),
    hold: (requests: readonly AdmissionRequest[], instance: string): Statement[] =>
      ifAny(
        requests.map(({ keyId, number, tokens }) => [keyId, instance, number, tokens]),
        hold,
      ),
    countRequests: (requests: readonly AdmissionRequest[], now: number): Statement[] =>
      ifAny(
        requests
          .filter(({ limits }) => limits.requests_per_minute !== null)
          .map(({ keyId }) => [keyId, Math.floor(now / 1000), 1, 0]),
        addSeconds,
      ),
    countRefusals: (requests: readonly AdmissionRequest[], now: number): Statement[] =>
      ifAny(
        requests.map(({ keyId }) => [keyId, dayNumberOf(now)]),
        addRefusals,
      ),
    prune: (now: number): Statement[] => [
      () => pruneSeconds.execute({ second: Math.floor(now / 1000) - windowSeconds }),
      () => pruneRefusals.execute({ day: dayNumberOf(now) - 1 }),
    ],
  };
}

function prepareGiveBack({
  db,
  tables: { admissions },
  jsonRows,
}: Engine): (ended: readonly AdmissionId[]) => Statement {
  const rows = jsonRows(sql.placeholder("rows"));
  const statement = db
    .delete(admissions)
    .where(
      sql`(${admissions.keyId}, ${admissions.instance}, ${admissions.number}) in
        (select ${integerAt(0)}, value->>1, ${integerAt(2)} from ${rows})`,
    )
    .prepare();
  return (ended) => {
    const json = jsonOf(ended.map(({ keyId, instance, number }) => [keyId, instance, number]));
    return () => statement.execute({ rows: json });
  };
}

function prepareAddSeconds({ db, tables: { keySeconds }, jsonRows }: Engine) {
  const rows = jsonRows(sql.placeholder("rows"));
  return db
    .insert(keySeconds)
    .select(
      sql`select ${integerAt(0)}, ${integerAt(1)}, sum(${integerAt(2)}), sum(${integerAt(3)}) from ${rows}
        where true group by 1, 2 order by 1, 2`,
    )
    .onConflictDoUpdate({
      target: [keySeconds.keyId, keySeconds.second],
      set: {
        requests: sql`${keySeconds.requests} + excluded.requests`,
        tokens: sql`${keySeconds.tokens} + excluded.tokens`,
      },
    })
    .prepare();
}

/** What a flush does for the admissions that end with it: their reserved tokens become counted ones. */
export function prepareSettling(
  engine: Engine,
): (settled: readonly AdmissionId[], increments: readonly UsageIncrement[]) => Statement[] {
  const giveBack = prepareGiveBack(engine);
  const addSeconds = prepareAddSeconds(engine);
  return (settled, increments) => {
    if (settled.length === 0) return [];
    const keys = new Set<KeyId>(settled.map(({ keyId }) => keyId));
    const rows = increments
      .filter(({ keyId }) => keys.has(keyId))
      .map((one) => [one.keyId, Math.floor(one.lastClosedAt / 1000), 0, one.inputTokens + one.outputTokens]);
    const addTokens = (): PromiseLike<unknown> => addSeconds.execute({ rows: jsonOf(rows) });
    return [...(rows.length > 0 ? [addTokens] : []), giveBack(settled)];
  };
}

/** Long enough for every process to see it. */
const endingRetentionMs = 60_000;

export function prepareListEndings({ db, tables: { keyEndings, keys } }: Engine): LimitStore["listEndings"] {
  const { id, keyId, endedAt } = keyEndings;
  const query = db
    .select({ id, keyId, endedAt, isActive: keys.isActive, expiresAt: keys.expiresAt })
    .from(keyEndings)
    .leftJoin(keys, eq(keys.id, keyId))
    .prepare();
  return () => query.execute();
}

function prepareEndings(
  engine: Engine,
  clock: WallClock,
): Pick<LimitStore, "endRunning" | "keepRunning" | "listEndings"> {
  const { db, transaction, tables } = engine;
  const { keyEndings } = tables;
  const deleteFuture = async (keyId: KeyId): Promise<void> => {
    await db.delete(keyEndings).where(and(eq(keyEndings.keyId, keyId), gt(keyEndings.endedAt, clock())));
  };
  return {
    listEndings: prepareListEndings(engine),
    keepRunning: deleteFuture,
    endRunning: (keyId, at) =>
      transaction(async () => {
        await db.delete(keyEndings).where(lt(keyEndings.endedAt, clock() - endingRetentionMs));
        await deleteFuture(keyId);
        await db.insert(keyEndings).values({ keyId, endedAt: at });
      }),
  };
}
