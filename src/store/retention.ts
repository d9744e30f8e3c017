import type { RequestLogLimits } from "./request-log-store.ts";

/** How long rows are kept. */
export interface Retention {
  /** Minute counts. Hours and days are kept without limit. */
  usageMinutesDays: number;
  requestLog: RequestLogLimits;
}

export const defaultRetention: Retention = { usageMinutesDays: 30, requestLog: { days: 7, rows: 5_000_000 } };
