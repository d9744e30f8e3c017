import { dayMs, floorToStep, seoulDay } from "../lib/seoul-time.ts";
import { dateTimeLabel } from "../lib/time-labels.ts";

/** The limits that a key may have, in the order in which they are shown. */
export const limitNames = [
  "max_concurrency",
  "requests_per_minute",
  "tokens_per_minute",
  "tokens_per_day",
  "tokens_per_month",
] as const;

export type LimitName = (typeof limitNames)[number];

export const limitLabels: Readonly<Record<LimitName, string>> = {
  max_concurrency: "Concurrent requests",
  requests_per_minute: "Requests per minute",
  tokens_per_minute: "Tokens per minute",
  tokens_per_day: "Tokens per day",
  tokens_per_month: "Tokens per month",
};

/** A key's limits and what counts against them, as the API gives them. */
export type LimitedKey = Readonly<Record<LimitName, number | null>> & {
  readonly used: Readonly<Record<LimitName, number | null>>;
};

interface UsedLimit {
  name: LimitName;
  used: number;
  limit: number;
}

export const usedLimits = (key: LimitedKey): UsedLimit[] =>
  limitNames.flatMap((name) => {
    const limit = key[name];
    return limit === null ? [] : [{ name, limit, used: key.used[name] ?? 0 }];
  });

/** The share of a limit from which a key is near it. */
export const nearShare = 0.8;

export const isNearLimit = (key: LimitedKey): boolean =>
  usedLimits(key).some(({ used, limit }) => used >= limit * nearShare);

/** When what is used of a limit frees again, as a short sentence. */
export function freesWhen(name: LimitName, now: number): string {
  if (name === "max_concurrency") return "Frees when a response ends";
  if (name.endsWith("_minute")) return "Frees within a minute";
  const tomorrow = floorToStep(now, dayMs) + dayMs;
  return `Starts anew on ${dateTimeLabel(name === "tokens_per_day" ? tomorrow : startOfNextMonth(now))}`;
}

function startOfNextMonth(now: number): number {
  const [year = 0, month = 0] = seoulDay(now).split("-").map(Number);
  return floorToStep(Date.UTC(year, month, 1), dayMs);
}

/** The whole number in a field; null if it is empty. */
export const limitOf = (text: string): number | null => (text.trim() === "" ? null : Number(text));

/** The parts of a list that is separated by commas; null if there are none. */
export function listOf(text: string): string[] | null {
  const parts = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return parts.length === 0 ? null : parts;
}
