import { dayMs } from "../lib/seoul-time.ts";
import { serverNow } from "../lib/server-clock.ts";
import { clockLabel, dayLabel } from "../lib/time-labels.ts";
import { offsetMs } from "../lib/time-zone.ts";

/** `13:00:05`; from another day, `21 Nov, 13:00:05`. */
export function clockSecondsLabel(at: number): string {
  const seconds = new Date(at).toISOString().slice(17, 19);
  const clock = `${clockLabel(at)}:${seconds}`;
  const isToday = serverNow() - at < dayMs && dayLabel(at) === dayLabel(serverNow());
  return isToday ? clock : `${dayLabel(at)}, ${clock}`;
}

/** The value of a `datetime-local` input, in the chosen zone. */
export const toInputTime = (at: number): string => new Date(at + offsetMs(at)).toISOString().slice(0, 16);

/** Epoch milliseconds; undefined for an empty or incomplete input. */
export function fromInputTime(text: string): number | undefined {
  const wall = /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) ? Date.parse(`${text.slice(0, 16)}:00Z`) : Number.NaN;
  return Number.isNaN(wall) ? undefined : wall - offsetMs(wall - offsetMs(wall));
}
