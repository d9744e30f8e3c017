import { minutesPerDay, minutesPerHour, offsetMinutes } from "../../time/seoul.ts";
import { countedFields, type UsageIncrement, usageTotals } from "../../domain/usage.ts";
import { type RowValues, groupRows } from "../engine/rows.ts";

type PeriodOf = (increment: UsageIncrement) => number;

export const hourOf: PeriodOf = ({ minute }) => Math.floor(minute / minutesPerHour);
export const dayOf: PeriodOf = ({ minute }) => Math.floor((minute + offsetMinutes) / minutesPerDay);

/** Rows of a table of sums by period and key. */
export const sumRows = (increments: readonly UsageIncrement[], periodOf: PeriodOf): RowValues[] =>
  groupRows(
    increments.map((one) => [periodOf(one), one.keyId, one.requestCount, ...usageTotals.map((field) => one[field])]),
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
      ...countedFields.map((field) => one[field] ?? 0),
    ]),
    3,
  );
