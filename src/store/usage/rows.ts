import { minutesPerDay, minutesPerHour, offsetMinutes } from "../../time/seoul.ts";
import type { UsageIncrement } from "./contract.ts";

type RowValues = (number | string)[];
type PeriodOf = (increment: UsageIncrement) => number;

export const hourOf: PeriodOf = ({ minute }) => Math.floor(minute / minutesPerHour);
export const dayOf: PeriodOf = ({ minute }) => Math.floor((minute + offsetMinutes) / minutesPerDay);

/** Rows of a table of sums by period and key. */
export const sumRows = (increments: readonly UsageIncrement[], periodOf: PeriodOf): RowValues[] =>
  groupRows(
    increments.map((one) => [periodOf(one), one.keyId, one.requestCount, one.inputTokens, one.outputTokens]),
    2,
  );

/** Rows of a table of sums by period, key and model. */
export const sumModelRows = (increments: readonly UsageIncrement[], periodOf: PeriodOf): RowValues[] =>
  groupRows(
    increments.map((one) => [
      periodOf(one),
      one.keyId,
      one.model ?? "",
      one.requestCount,
      one.inputTokens,
      one.outputTokens,
      one.cachedInputTokens ?? 0,
      one.cachedBesideInputTokens ?? 0,
      one.reasoningTokens ?? 0,
    ]),
    3,
  );

/**
 * Adds rows up whose first `keyLength` values are the same. Sorted by these, so that concurrent flushes lock rows in the same
 * order.
 */
export function groupRows(rows: RowValues[], keyLength: number): RowValues[] {
  if (rows.length < 2) return rows;
  const groups = new Map<string, RowValues>();
  for (const row of rows) {
    const key = row.slice(0, keyLength).join(" ");
    const sum = groups.get(key);
    if (sum === undefined) groups.set(key, row);
    else for (let at = keyLength; at < row.length; at++) sum[at] = Number(sum[at]) + Number(row[at]);
  }
  return [...groups.values()].toSorted((a, b) => compareRows(a, b, keyLength));
}

function compareRows(a: RowValues, b: RowValues, keyLength: number): number {
  for (let at = 0; at < keyLength; at++) {
    const [left = 0, right = 0] = [a[at], b[at]];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}
