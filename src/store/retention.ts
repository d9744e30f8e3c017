import { dayNumberOf, minuteOf, minutesPerDay, minutesPerHour, msPerMinute } from "../time/seoul.ts";
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
const milliseconds = (instantMs: number): number => instantMs;
const secondOf = (instantMs: number): number => Math.floor(instantMs / 1000);
const hourOf = (instantMs: number): number => Math.floor(minuteOf(instantMs) / minutesPerHour);

const msPerDay = minutesPerDay * msPerMinute;
const hoursPerDay = 24;
const trafficDays = 31;
/** The longest chart has 30 days. */
const gpuDays = 30 + spareDays;

/**
 * What maintenance deletes by time. Three statements stand elsewhere: `gpu/ingest.ts` deletes old samples with each push,
 * as the specification says, and the latest ones with them (`keptSamples`); `requests/log.ts` knows clocks that were wrong,
 * and deletes by number too. Rows of processes that died are given back by the others (`limits/limits.ts`).
 */
export const expiringRows: readonly ExpiringRows[] = [
  { table: "usageMinute", column: "minute", timeOf: minuteOf, keeps: keptMinutes, perRound: 5 },
  { table: "usageModelHour", column: "hour", timeOf: hourOf, keeps: always(91 * hoursPerDay), perRound: 1 },
  { table: "usageFlushes", column: "writtenAt", timeOf: milliseconds, keeps: always(msPerDay) },
  { table: "owned", column: "usedAt", timeOf: milliseconds, keeps: always(400 * msPerDay), perRound: 5 * msPerMinute },
  // Backends keep responses for 30 days at most.
  {
    table: "countedResponses",
    column: "countedAt",
    timeOf: milliseconds,
    keeps: always(31 * msPerDay),
    perRound: 5 * msPerMinute,
  },
  ...(["latencyMinute", "outcomeMinute"] as const).map((table) => ({
    table,
    column: "minute",
    timeOf: minuteOf,
    keeps: always(trafficDays * minutesPerDay),
    perRound: 5,
  })),
  // A backend is slow beside its last 7 days. The console shows the last hour.
  { table: "backendMinute", column: "minute", timeOf: minuteOf, keeps: always(8 * minutesPerDay), perRound: 5 },
  ...(["latencyHour", "outcomeHour"] as const).map((table) => ({
    table,
    column: "hour",
    timeOf: hourOf,
    keeps: always(trafficDays * hoursPerDay),
    perRound: 1,
  })),
  ...(["gpuMinute", "gpuPowerMinute"] as const).map((table) => ({
    table,
    column: "minute",
    timeOf: minuteOf,
    keeps: always(gpuDays * minutesPerDay),
    perRound: 10,
  })),
  { table: "gpuHour", column: "hour", timeOf: hourOf, keeps: always(gpuDays * hoursPerDay), perRound: 1 },
  // Limits count the last 61 seconds by the database's clock: an instance whose own is minutes ahead must not delete these.
  { table: "leaseSeconds", column: "second", timeOf: secondOf, keeps: always(5 * 60) },
  { table: "states", column: "seenAt", timeOf: milliseconds, keeps: always(31 * msPerDay), perRound: 60 * msPerMinute },
  { table: "notices", column: "createdAt", timeOf: milliseconds, keeps: always(31 * msPerDay) },
  // Listed for minutes only.
  { table: "catalogInstances", column: "seenAt", timeOf: milliseconds, keeps: always(msPerDay) },
  { table: "keyRefusals", column: "day", timeOf: dayNumberOf, keeps: always(1) },
  // Every process reads them once a second.
  { table: "keyEndings", column: "endedAt", timeOf: milliseconds, keeps: always(msPerMinute) },
  { table: "sessions", column: "expiresAt", timeOf: milliseconds, keeps: always(0) },
  { table: "audit", column: "at", timeOf: milliseconds, keeps: always(400 * msPerDay), perRound: 60 * msPerMinute },
  // Listed as expired for a month.
  { table: "apiTokens", column: "expiresAt", timeOf: milliseconds, keeps: always(30 * msPerDay) },
  { table: "loginAttempts", column: "attemptedAt", timeOf: milliseconds, keeps: always(msPerMinute) },
  { table: "formerSecrets", column: "validUntil", timeOf: milliseconds, keeps: always(0) },
];

/** Samples of GPUs; `perPushMs` limits what one push deletes. */
export const keptSamples = { ms: 7 * msPerDay, perPushMs: 10_000 };
