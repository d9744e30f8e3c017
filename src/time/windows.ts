import { dayNumberOf, monthOf, startOfDayNumber } from "./seoul.ts";

/** The stretches of time in which limits count, the shortest first. */
export const windows = ["now", "minute", "day", "month"] as const;

export type Window = (typeof windows)[number];
export type CalendarWindow = Exclude<Window, "now" | "minute">;

/**
 * The window of a minute, in whole seconds: the second in which it begins counts in full, so that no 60 seconds, wherever
 * they begin, have more than the limit.
 */
export const minuteWindowSeconds = 61;

const resets: Readonly<Record<Window, (now: number) => number>> = {
  now: (now) => now,
  minute: (now) => now + minuteWindowSeconds * 1000,
  day: (now) => startOfDayNumber(dayNumberOf(now) + 1),
  month: (now) => startOfDayNumber(monthOf(now).nextFirstDay),
};

/** When what counts now no longer does, epoch milliseconds. */
export const windowResetAt = (window: Window, now: number): number => resets[window](now);

/** How long they last, as Codex names them (`daily limit`). */
export const windowMinutes: Readonly<Record<CalendarWindow, number>> = { day: 1440, month: 43_200 };

/** Whether a window begins anew at a time of the calendar, which may be hours away. */
export const isCalendarWindow = (window: Window): window is CalendarWindow => window !== "now" && window !== "minute";
