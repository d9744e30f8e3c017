import { minutesPerDay, minutesPerHour, offsetMinutes } from "../../time/seoul.ts";
import { chargeFields, countedFields, type UsageIncrement, usageTotals } from "../../domain/usage.ts";
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

/** Rows of the table of days, with what limits are charged. */
export const sumDayRows = (increments: readonly UsageIncrement[]): RowValues[] =>
  groupRows(
    increments.map((one) => [
      dayOf(one),
      one.keyId,
      one.requestCount,
      ...usageTotals.map((field) => one[field]),
      ...chargeFields.map((field) => one[field] ?? 0),
    ]),
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
