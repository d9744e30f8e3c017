/** Seoul is at UTC+09:00 all year, so a shifted instant read as UTC gives Seoul's wall clock. Times are epoch milliseconds. */
const offsetMs = 9 * 3_600_000;

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

const wallClock = (ms: number): string => new Date(ms + offsetMs).toISOString();

/** `2026-11-21` */
export const seoulDay = (ms: number): string => wallClock(ms).slice(0, 10);

/** `2026-11-21T13:00`, as in the URL of a zoom. */
export const seoulMinute = (ms: number): string => wallClock(ms).slice(0, 16);

/** `2026-11-21T13:00:00.000+09:00`, as the API writes it. */
export const seoulTimestamp = (ms: number): string => `${wallClock(ms).slice(0, 23)}+09:00`;

/** `13:00` */
export const clockLabel = (ms: number): string => wallClock(ms).slice(11, 16);

/** `21 Nov` */
export function dayLabel(ms: number): string {
  const text = wallClock(ms);
  return `${Number(text.slice(8, 10))} ${months[Number(text.slice(5, 7)) - 1]}`;
}

/** `21 Nov 2026, 13:00:05 KST` */
export function dateTimeLabel(ms: number): string {
  const text = wallClock(ms);
  return `${dayLabel(ms)} ${text.slice(0, 4)}, ${text.slice(11, 19)} KST`;
}

/** `21 Nov, 13:00 – 14:00`, with both days if the span crosses midnight. */
export function spanLabel(from: number, to: number): string {
  const end = seoulDay(from) === seoulDay(to) ? clockLabel(to) : `${dayLabel(to)}, ${clockLabel(to)}`;
  return `${dayLabel(from)}, ${clockLabel(from)} – ${end}`;
}

export function parseSeoulMinute(text: string): number | undefined {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)) return undefined;
  const ms = Date.parse(`${text}:00+09:00`);
  return Number.isNaN(ms) ? undefined : ms;
}

/** The start of the bucket that contains `ms`. Like the server's, buckets are aligned to Seoul's clock. */
export function floorToStep(ms: number, stepMs: number): number {
  return Math.floor((ms + offsetMs) / stepMs) * stepMs - offsetMs;
}

export function ceilToStep(ms: number, stepMs: number): number {
  return Math.ceil((ms + offsetMs) / stepMs) * stepMs - offsetMs;
}
