import { createSignal } from "solid-js";
import { readSetting, watchSetting, writeSetting } from "./browser-settings.ts";
import { hourMs, minuteMs } from "./seoul-time.ts";

const zones = ["kst", "utc", "local"] as const;
type TimeZone = (typeof zones)[number];

const zoneOf = (setting: string | undefined): TimeZone => zones.find((known) => known === setting) ?? "kst";

const [timeZone, setTimeZone] = createSignal(zoneOf(readSetting("zone")));
/** The zone of every clock time in the console. Days are Seoul's in any zone, as in the API. */
export { timeZone };

export function chooseTimeZone(chosen: TimeZone): void {
  setTimeZone(chosen);
  writeSetting("zone", chosen === "kst" ? undefined : chosen);
}

/** Follows the choice in other tabs, until the calling component is removed. */
export const syncTimeZoneAcrossTabs = (): void => watchSetting("zone", (setting) => setTimeZone(zoneOf(setting)));

/** From UTC, at a time in epoch milliseconds: the local offset changes with summer time. */
export function offsetMs(at: number): number {
  if (timeZone() === "local") return -new Date(at).getTimezoneOffset() * minuteMs;
  return timeZone() === "kst" ? 9 * hourMs : 0;
}

/** `2026-11-21T13:00`, for a field of a form; empty without a time. @param text an ISO 8601 timestamp */
export function fieldTime(text: string | null): string {
  const at = Date.parse(text ?? "");
  return Number.isNaN(at) ? "" : new Date(at + offsetMs(at)).toISOString().slice(0, 16);
}

/** The instant of a form's field, epoch milliseconds; undefined if it is empty or incomplete. */
export function parseFieldTime(text: string): number | undefined {
  const suffix = { kst: "+09:00", utc: "Z", local: "" }[timeZone()];
  const at = Date.parse(`${text}${suffix}`);
  return Number.isNaN(at) ? undefined : at;
}

const localFormat = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });

const localName = (at: number): string =>
  localFormat.formatToParts(at).find(({ type }) => type === "timeZoneName")?.value ?? "local";

/** `KST`, `UTC`, `CET` */
export const zoneName = (at: number): string => (timeZone() === "local" ? localName(at) : timeZone().toUpperCase());

/** The choices of a control that selects the zone. */
export const timeZoneOptions = (at: number): { value: TimeZone; label: string }[] => [
  { value: "kst", label: "KST" },
  { value: "utc", label: "UTC" },
  { value: "local", label: `Local (${localName(at)})` },
];
