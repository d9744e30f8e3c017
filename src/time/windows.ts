import { type Days, dayNumberOf, monthOf, startOfDayNumber } from "./seoul.ts";

/** The stretches of time in which limits count, the shortest first. */
export const windows = ["now", "minute", "day", "week", "month"] as const;

export type Window = (typeof windows)[number];
/** One that begins anew at a time of the calendar, which may be hours away. */
export type CalendarWindow = Exclude<Window, "now" | "minute">;

/**
 * The window of a minute, in whole seconds: the second in which it begins counts in full, so that no 60 seconds, wherever
 * they begin, have more than the limit.
 */
export const minuteWindowSeconds = 61;

export const isCalendarWindow = (window: Window): window is CalendarWindow => window !== "now" && window !== "minute";

/** 1970-01-01, day 0, was a Thursday, and weeks begin on Monday. */
const mondayOf = (day: number): number => day - ((day + 3) % 7);

/** The days of a window of the calendar, in Seoul time. */
export function daysOfWindow(window: CalendarWindow, now: number): Days {
  const today = dayNumberOf(now);
  if (window === "day") return { from: today, to: today + 1 };
  if (window === "week") return { from: mondayOf(today), to: mondayOf(today) + 7 };
  const { firstDay, nextFirstDay } = monthOf(now);
  return { from: firstDay, to: nextFirstDay };
}

/** When what counts now no longer does, epoch milliseconds. */
export function windowResetAt(window: Window, now: number): number {
  if (window === "now") return now;
  if (window === "minute") return now + minuteWindowSeconds * 1000;
  return startOfDayNumber(daysOfWindow(window, now).to);
}

/** How long they last, as Codex names them (`daily limit`). */
export const windowMinutes: Readonly<Record<CalendarWindow, number>> = { day: 1440, week: 10_080, month: 43_200 };
