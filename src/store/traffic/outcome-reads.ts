import { and, eq, type SQL, sql } from "drizzle-orm";
import { type Engine, safeSum } from "../engine/engine.ts";
import { bucketOf, isWithin } from "./latency-reads.ts";
import type { OutcomePoint, OutcomeSums, TrafficRange } from "./contract.ts";
import type { KeyId } from "../../domain/keys.ts";
import { noFailure, type OutcomeSum } from "../../domain/requests.ts";

interface SuccessRow {
  period: number;
  count: number;
}

interface OutcomeRow extends SuccessRow {
  keyId: KeyId;
  outcome: string;
  code: string;
  lastAt: number;
}

const success = "completed";

/**
 * Successes, which most rows are, are added up by SQL in the order of the table. All others are added up here, by two groupings
 * at once, unless the database groups rows: an outage has one for each key and minute.
 */
export async function sumOutcomes(
  { rows, groupsRows, tables: { outcomeMinute, outcomeHour } }: Engine,
  range: TrafficRange,
  limit: number,
  keyId: KeyId | undefined,
): Promise<OutcomeSums> {
  const table = range.byHour ? outcomeHour : outcomeMinute;
  const period = range.byHour ? sql`${outcomeHour.hour}` : sql`${outcomeMinute.minute}`;
  const isMeant = and(isWithin(period, range), keyId === undefined ? undefined : eq(table.keyId, keyId));
  const isSuccess: SQL = sql`${table.code} = '' and ${table.outcome} = ${success}`;
  const successes = await rows<SuccessRow>(
    sql`select ${period} as "period", ${safeSum(table.count)} as "count"
      from ${table} where ${isMeant} and ${isSuccess} group by 1 order by 1`,
  );
  const others = sql`${isMeant} and not (${isSuccess})`;
  const read = (periods: SQL, keyIds: SQL, sums: SQL, rest: SQL): Promise<OutcomeRow[]> =>
    rows<OutcomeRow>(
      sql`select ${periods} as "period", ${keyIds} as "keyId", ${table.outcome} as "outcome", ${table.code} as "code",
        ${sums} from ${table} where ${rest}`,
      ["outcome", "code"],
    );
  if (!groupsRows) {
    const found = await read(
      period,
      sql`${table.keyId}`,
      sql`${table.count} as "count", ${table.lastAt} as "lastAt"`,
      others,
    );
    return { points: pointsOf(successes, found, range), failures: mostFirst(failuresOf(found)).slice(0, limit) };
  }
  const sums = sql`${safeSum(table.count)} as "count", max(${table.lastAt}) as "lastAt"`;
  const byPeriod = await read(period, sql`0`, sums, sql`${others} group by 1, 3, 4`);
  const isFailed = sql`${table.code} <> '' and ${table.outcome} <> ${noFailure}`;
  const order = sql`${safeSum(table.count)} desc, max(${table.lastAt}) desc, ${table.keyId}`;
  const byKey = await read(
    sql`0`,
    sql`${table.keyId}`,
    sums,
    sql`${isMeant} and ${isFailed} group by 2, 3, 4 order by ${order} limit ${limit}`,
  );
  return { points: pointsOf(successes, byPeriod, range), failures: mostFirst(failuresOf(byKey)) };
}

function pointsOf(
  successes: readonly SuccessRow[],
  others: readonly OutcomeRow[],
  range: TrafficRange,
): OutcomePoint[] {
  const points = new Map<number, Map<string, OutcomePoint>>();
  const add = ({ period, count }: SuccessRow, outcome: string, failedCount: number): void => {
    const minute = bucketOf(period, range);
    const ofBucket = points.getOrInsertComputed(minute, () => new Map<string, OutcomePoint>());
    const point = ofBucket.getOrInsertComputed(outcome, () => ({ minute, outcome, count: 0, failedCount: 0 }));
    point.count += count;
    point.failedCount += failedCount;
  };
  for (const row of successes) add(row, success, 0);
  for (const row of others) add(row, row.outcome, isFailure(row) ? row.count : 0);
  return [...points.values()]
    .flatMap((ofBucket) => Array.from(ofBucket.values()))
    .toSorted((a, b) => a.minute - b.minute || (a.outcome < b.outcome ? -1 : 1));
}

const isFailure = ({ outcome, code }: OutcomeRow): boolean => code !== "" && outcome !== noFailure;

function failuresOf(rows: readonly OutcomeRow[]): OutcomeSum[] {
  // Not one map by a text of all three: to join it takes as long as all the rest.
  const sums = new Map<KeyId, Map<string, Map<string, OutcomeSum>>>();
  for (const row of rows) {
    if (!isFailure(row)) continue;
    const { keyId, outcome, code, count, lastAt } = row;
    const ofKey = sums.getOrInsertComputed(keyId, () => new Map<string, Map<string, OutcomeSum>>());
    const ofOutcome = ofKey.getOrInsertComputed(outcome, () => new Map<string, OutcomeSum>());
    const sum = ofOutcome.getOrInsertComputed(code, () => ({ minute: 0, keyId, outcome, code, count: 0, lastAt: 0 }));
    sum.count += count;
    if (lastAt > sum.lastAt) sum.lastAt = lastAt;
  }
  return [...sums.values()]
    .flatMap((ofKey) => Array.from(ofKey.values()))
    .flatMap((ofOutcome) => Array.from(ofOutcome.values()));
}

export const mostFirst = (failures: readonly OutcomeSum[]): OutcomeSum[] =>
  failures.toSorted((a, b) => b.count - a.count || b.lastAt - a.lastAt || a.keyId - b.keyId);
