import { serverNow } from "./server-clock.ts";
import { offsetMs, zoneName } from "./time-zone.ts";

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** An instant shifted by its offset, read as UTC, gives the zone's wall clock. Times are epoch milliseconds. */
const wallClock = (at: number): string => new Date(at + offsetMs(at)).toISOString();

const yearOf = (at: number): string => wallClock(at).slice(0, -20);

/** `21 Nov` */
function dayOfMonthLabel(at: number): string {
  const text = wallClock(at);
  return `${Number(text.slice(-16, -14))} ${months[Number(text.slice(-19, -17)) - 1]}`;
}

/** `13:00` */
export const clockLabel = (at: number): string => wallClock(at).slice(-13, -8);

/** `13:00 KST` */
export const zonedClockLabel = (at: number): string => `${clockLabel(at)} ${zoneName(at)}`;

/** `21 Nov`, with the year if it is not this one. */
export function dayLabel(at: number): string {
  const year = yearOf(at);
  return year === yearOf(serverNow()) ? dayOfMonthLabel(at) : `${dayOfMonthLabel(at)} ${year}`;
}

/** `21 Nov 2026, 13:00:05 KST` */
export const dateTimeLabel = (at: number): string =>
  `${dayOfMonthLabel(at)} ${yearOf(at)}, ${wallClock(at).slice(-13, -5)} ${zoneName(at)}`;

/** `21 Nov, 13:00 – 14:00 KST`, with both days if the span crosses midnight. */
export function spanLabel(from: number, to: number): string {
  const end = dayLabel(from) === dayLabel(to) ? clockLabel(to) : `${dayLabel(to)}, ${clockLabel(to)}`;
  return `${dayLabel(from)}, ${clockLabel(from)} – ${end} ${zoneName(to)}`;
}
