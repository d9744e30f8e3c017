// Seoul's calendar: days, months and buckets, and the windows of limits, which end by it.

import dayjs from "dayjs";
import utc from "dayjs/plugin/utc";

dayjs.extend(utc);

/** Korea has used +09:00 without daylight saving time since 1988, so a fixed offset is enough on any machine. */
export const offsetMinutes = 9 * 60;
export const msPerMinute = 60_000;
export const minutesPerHour = 60;
export const minutesPerDay = 24 * minutesPerHour;
export const msPerDay = minutesPerDay * msPerMinute;

/** Minutes since the epoch. */
export function minuteOf(instantMs: number): number {
  return Math.floor(instantMs / msPerMinute);
}

/** Days since 1970-01-01 in Seoul time; the form in which days are stored and compared. */
export function dayNumberOf(instantMs: number): number {
  return Math.floor((instantMs + offsetMinutes * msPerMinute) / msPerDay);
}

/** The day in Seoul time, as `YYYY-MM-DD`. */
export function dayOf(instantMs: number): string {
  return dayFromNumber(dayNumberOf(instantMs));
}

/** Without Day.js, which takes 10 µs for it: a report has thousands of them. */
export function dayFromNumber(dayNumber: number): string {
  return new Date(dayNumber * msPerDay).toISOString().slice(0, "YYYY-MM-DD".length);
}

export function dayNumberFrom(day: string): number {
  return dayjs.utc(day).valueOf() / msPerDay;
}

/** Whether it is `YYYY-MM-DD`, and exists. Parsers take 30 February for 2 March. */
export function isDay(day: string): boolean {
  const instantMs = Date.parse(day);
  return !Number.isNaN(instantMs) && new Date(instantMs).toISOString().slice(0, "YYYY-MM-DD".length) === day;
}

export function dayBefore(day: string, days: number): string {
  return dayFromNumber(dayNumberFrom(day) - days);
}

/** The start of a day in Seoul time, in epoch milliseconds. */
export function startOfDay(day: string): number {
  return startOfDayNumber(dayNumberFrom(day));
}

/**
 * Days since 1970-01-01 in Seoul time: the first day of an instant's month, and that of the month after it. Without Day.js,
 * which takes 3 µs for it: each request of a key with a limit of the month needs it.
 */
export function monthOf(instantMs: number): { firstDay: number; nextFirstDay: number } {
  const day = new Date(dayNumberOf(instantMs) * msPerDay);
  const [year, month] = [day.getUTCFullYear(), day.getUTCMonth()];
  return { firstDay: Date.UTC(year, month, 1) / msPerDay, nextFirstDay: Date.UTC(year, month + 1, 1) / msPerDay };
}

/** Days since 1970-01-01 in Seoul time; the end is exclusive. */
export interface Days {
  from: number;
  to: number;
}

/** The latest part first: whole months, and the days before and after these. */
export function splitByMonths({ from, to }: Days): (Days & { unit: "day" | "month" })[] {
  const { firstDay, nextFirstDay } = monthOf(startOfDayNumber(from));
  const months = { from: firstDay === from ? from : nextFirstDay, to: monthOf(startOfDayNumber(to)).firstDay };
  if (months.from >= months.to) return from < to ? [{ unit: "day", from, to }] : [];
  return [
    ...splitByMonths({ from: months.to, to }),
    { unit: "month", ...months },
    ...splitByMonths({ from, to: months.from }),
  ];
}

/** The first days of the months of a range that begins with one. */
export function listMonths({ from, to }: Days): number[] {
  const months: number[] = [];
  for (let day = from; day < to; day = monthOf(startOfDayNumber(day)).nextFirstDay) months.push(day);
  return months;
}

/** The start of a day (since 1970-01-01) in Seoul time, in epoch milliseconds. */
export function startOfDayNumber(dayNumber: number): number {
  return (dayNumber * minutesPerDay - offsetMinutes) * msPerMinute;
}

/** The first hour (since the epoch) of a day in Seoul time. */
export const hourOfDay = (dayNumber: number): number => (dayNumber * minutesPerDay - offsetMinutes) / minutesPerHour;

/** The first minute (since the epoch) of the bucket of `minute`. Buckets count from midnight of 1970-01-01 in Seoul. */
export function bucketFloor(minute: number, bucketMinutes: number): number {
  return Math.floor((minute + offsetMinutes) / bucketMinutes) * bucketMinutes - offsetMinutes;
}

/** `2026-05-01T09:00:00.000+09:00`. Without Day.js, which takes 12 µs for it: a report has thousands of them. */
export function timestampOf(instantMs: number): string {
  return new Date(instantMs + offsetMinutes * msPerMinute).toISOString().replace("Z", "+09:00");
}

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
