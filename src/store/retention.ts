import { minutesPerDay } from "../time/seoul.ts";
import type { RequestLogLimits } from "./requests/contract.ts";

/** How long rows are kept. */
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
