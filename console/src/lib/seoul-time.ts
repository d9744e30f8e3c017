/** Seoul is at UTC+09:00 all year, so a shifted instant read as UTC gives Seoul's wall clock. Times are epoch milliseconds. */
const offsetMs = 9 * 3_600_000;

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;
export const dayMs = 24 * hourMs;

const wallClock = (ms: number): string => new Date(ms + offsetMs).toISOString();

/** `2026-11-21` */
export const seoulDay = (ms: number): string => wallClock(ms).slice(0, 10);

/** `2026-11-21T13:00`, as in the URL of a zoom: a link means the same span in any zone. */
export const seoulMinute = (ms: number): string => wallClock(ms).slice(0, 16);

/** `2026-11-21T13:00:00.000+09:00`, as the API writes it. */
export const seoulTimestamp = (ms: number): string => `${wallClock(ms).slice(0, 23)}+09:00`;

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
