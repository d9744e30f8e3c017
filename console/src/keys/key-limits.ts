import { dayMs, floorToStep, seoulDay } from "../lib/seoul-time.ts";
import { count } from "../lib/format.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";
import { type LimitKind, limitKinds, type LimitName, limitNames, perLimit } from "../../../src/domain/limits.ts";

const capitalized = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export const limitLabels = perLimit((name) => capitalized(limitKinds[name].unit));

/** Those of a stretch of the calendar. */
export const calendarLimits = limitNames.filter((name) => !["now", "minute"].includes(limitKinds[name].window));

/** What counts against a limit, as the API gives it. */
interface LimitState {
  readonly limit: number;
  /** Of the limit, what is added to it until its window ends. */
  readonly extra?: number;
  readonly used: number;
  readonly reserved: number;
  /** How much of what is used is an estimate; null if unknown. */
  readonly estimated: number | null;
}

export interface LimitedKey {
  readonly limit_states: Readonly<Partial<Record<LimitName, LimitState>>>;
}

/** What is used, with what is reserved. */
export const usedLimits = ({ limit_states: states }: LimitedKey) =>
  limitNames.flatMap((name) => {
    const state = states[name];
    return state === undefined ? [] : [{ ...state, name, used: state.used + state.reserved }];
  });

export const isAtLimit = (key: LimitedKey): boolean => usedLimits(key).some(({ used, limit }) => used >= limit);

/** The share of a limit from which a key is near it. */
export const nearShare = 0.8;

export const isNearLimit = (key: LimitedKey): boolean =>
  usedLimits(key).some(({ used, limit }) => used >= limit * nearShare);

/** When what is used of a limit frees again, as a short sentence. */
export const freesWhen = (name: LimitName, now: number): string => frees[limitKinds[name].window](now);

const frees: Readonly<Record<LimitKind["window"], (now: number) => string>> = {
  now: () => "Frees when a response ends",
  minute: () => "Frees within a minute",
  day: (now) => startsAnew(floorToStep(now, dayMs) + dayMs),
  week: (now) => startsAnew(floorToStep(now - 4 * dayMs, 7 * dayMs) + 11 * dayMs),
  month: (now) => startsAnew(startOfNextMonth(now)),
};

const startsAnew = (at: number): string => `Starts anew on ${dateTimeLabel(at)}`;

function startOfNextMonth(now: number): number {
  const [year = 0, month = 0] = seoulDay(now).split("-").map(Number);
  return floorToStep(Date.UTC(year, month, 1), dayMs);
}

const multiples: Readonly<Record<string, number>> = { "": 1, k: 1000, m: 1_000_000, b: 1_000_000_000 };

/** The whole number that a field means, such as `1.5M`, `50k` or `1,000,000`; null if it is empty, undefined if it cannot be read. */
export function limitOf(text: string): number | null | undefined {
  if (text.trim() === "") return null;
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+)\s*([kmb]?)$/i.exec(text.trim()) ?? [];
  const amount = Number((Number(digits.replaceAll(",", "")) * (multiples[unit.toLowerCase()] ?? 1)).toFixed(3));
  return digits !== "" && Number.isSafeInteger(amount) && amount > 0 ? amount : undefined;
}

/** What a field of a limit means, or what can be typed there. @param none what an empty one means */
export function limitHint(name: LimitName, text: string, none = "No limit"): string {
  const limit = limitOf(text);
  if (limit === undefined) return "A whole number such as 1M, 1.5M, 50k or 1,000,000";
  return amountOf(limit, limitKinds[name].unit) ?? none;
}

/** @param unit begins with a plural, or has it as its second word. @returns undefined without a limit */
export const amountOf = (limit: number | null, unit: string): string | undefined =>
  limit === null ? undefined : `${count(limit)} ${limit === 1 ? unit.replace(/s\b/, "") : unit}`;

/** The parts of a list that is separated by commas; null if there are none. */
export function listOf(text: string): string[] | null {
  const parts = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return parts.length === 0 ? null : parts;
}
