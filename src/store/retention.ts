import { dayNumberOf, minuteOf, minutesPerDay, minutesPerHour, msPerDay, msPerMinute } from "../time/seoul.ts";
import type { RequestLogLimits } from "./requests/contract.ts";
import type { Tables } from "./schema/schema.ts";

/** How long rows are kept, as far as operators choose it. */
export interface Retention {
  /** Minute counts. Hours and days are kept without limit. */
  usageMinutesDays: number;
  requestLog: RequestLogLimits;
}

export const defaultRetention: Retention = { usageMinutesDays: 30, requestLog: { days: 7, rows: 5_000_000 } };

/** Beyond the days that are kept: the first bucket of a window may begin up to a day earlier. */
const spareDays = 2;

/** How many minutes back minute counts reach. */
export const keptMinutes = ({ usageMinutesDays }: Pick<Retention, "usageMinutesDays">): number =>
  (usageMinutesDays + spareDays) * minutesPerDay;

/** The rows of a table that are deleted once their time is over. */
export interface ExpiringRows {
  table: keyof Tables;
  /** Says of when a row is. */
  column: string;
  /** An instant in epoch milliseconds, in the unit of the column. */
  timeOf: (instantMs: number) => number;
  /** How many units a row is kept. */
  keeps: (retention: Retention) => number;
  /**
   * How many units one round of maintenance deletes at most, and there is one a minute: a clock that is wrong for a while
   * then does little harm, and after a long pause the following rounds delete the rest.
   */
  perRound?: number;
}

const always = (units: number) => (): number => units;
const trafficDays = 31;
/** The longest chart has 30 days. */
const gpuDays = 30 + spareDays;
type Table = ExpiringRows["table"];

const minutes = (table: Table, days: number, perRound = 5): ExpiringRows => {
  return { table, column: "minute", timeOf: minuteOf, keeps: always(days * minutesPerDay), perRound };
};
const hours = (table: Table, days: number): ExpiringRows => {
  const timeOf = (instantMs: number): number => Math.floor(minuteOf(instantMs) / minutesPerHour);
  return { table, column: "hour", timeOf, keeps: always(days * 24), perRound: 1 };
};
/** With times in milliseconds. */
const instants = (table: Table, column: string, keptMs: number, more: { perRound?: number } = {}): ExpiringRows => {
  return { table, column, timeOf: (instantMs) => instantMs, keeps: always(keptMs), ...more };
};

/**
 * What maintenance deletes by time. Three statements stand elsewhere: `gpu/ingest.ts` deletes old samples with each push,
 * as the specification says, and the latest ones with them (`keptSamples`); `requests/log.ts` knows clocks that were wrong,
 * and deletes by number too. Rows of processes that died are given back by the others (`limits/limits.ts`).
 */
export const expiringRows: readonly ExpiringRows[] = [
  { ...minutes("usageMinute", 0), keeps: keptMinutes },
  hours("usageModelHour", 91),
  instants("usageFlushes", "writtenAt", msPerDay),
  instants("owned", "usedAt", 400 * msPerDay, { perRound: 5 * msPerMinute }),
  // Backends keep responses for 30 days at most.
  instants("countedResponses", "countedAt", 31 * msPerDay, { perRound: 5 * msPerMinute }),
  minutes("latencyMinute", trafficDays),
  minutes("outcomeMinute", trafficDays),
  // A backend is slow beside its last 7 days. The console shows the last hour.
  minutes("backendMinute", 8),
  hours("latencyHour", trafficDays),
  hours("outcomeHour", trafficDays),
  minutes("gpuMinute", gpuDays, 10),
  minutes("gpuPowerMinute", gpuDays, 10),
  hours("gpuHour", gpuDays),
  // Limits count the last 61 seconds by the database's clock: an instance whose own is minutes ahead must not delete these.
  { table: "leaseSeconds", column: "second", timeOf: (ms) => Math.floor(ms / 1000), keeps: always(5 * 60) },
  instants("states", "seenAt", 31 * msPerDay, { perRound: 60 * msPerMinute }),
  instants("notices", "createdAt", 31 * msPerDay),
  // Listed for minutes only.
  instants("catalogInstances", "seenAt", msPerDay),
  { table: "keyRefusals", column: "day", timeOf: dayNumberOf, keeps: always(1) },
  // Every process reads them once a second.
  instants("keyEndings", "endedAt", msPerMinute),
  instants("sessions", "expiresAt", 0),
  instants("audit", "at", 400 * msPerDay, { perRound: 60 * msPerMinute }),
  // Listed as expired for a month.
  instants("apiTokens", "expiresAt", 30 * msPerDay),
  instants("loginAttempts", "attemptedAt", msPerMinute),
  instants("formerSecrets", "validUntil", 0),
];

/** Samples of GPUs; `perPushMs` limits what one push deletes. */
export const keptSamples = { ms: 7 * msPerDay, perPushMs: 10_000 };
