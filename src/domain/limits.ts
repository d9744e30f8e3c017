// The kinds of limits that a key may have. What knows of kinds derives from this table: rules, body schemas, headers, errors,
// metrics, sums, and the fields and bars of the console. A kind in a new window also needs the end of that window
// (`src/time/seoul.ts`), its sum (`src/store/limits/take-leases.ts`; on PostgreSQL in `tollgate_take_leases` too), and the
// console's words (`key-limits.ts`).

import type { Window } from "../time/seoul.ts";

/** What a limit counts: requests that were admitted, input and output tokens, or requests in flight. */
export type Counts = "requests" | "tokens" | "places";

export interface LimitKind {
  counts: Counts;
  window: Window;
  /** The largest limit that may be set. */
  maximum: number;
  /** What is limited, for clients and the console: "limited to 5 …". */
  unit: string;
  /** What the API's documentation says of it. */
  description: string;
}

/** Named as in the API, in the order in which they are shown. */
export const limitKinds = {
  max_concurrency: {
    counts: "places",
    window: "now",
    maximum: 1_000_000,
    unit: "concurrent requests",
    description: "Requests in flight",
  },
  requests_per_minute: {
    counts: "requests",
    window: "minute",
    maximum: 1_000_000_000,
    unit: "requests per minute",
    description: "In any 60 seconds",
  },
  tokens_per_minute: {
    counts: "tokens",
    window: "minute",
    maximum: 1_000_000_000_000,
    unit: "tokens per minute",
    description: "Input and output, in any 60 seconds",
  },
  tokens_per_day: {
    counts: "tokens",
    window: "day",
    maximum: 1_000_000_000_000,
    unit: "tokens per day",
    description: "Input and output, per day in Seoul time",
  },
  tokens_per_week: {
    counts: "tokens",
    window: "week",
    maximum: 1_000_000_000_000,
    unit: "tokens per week",
    description: "Input and output, per week in Seoul time, which begins on Monday",
  },
  tokens_per_month: {
    counts: "tokens",
    window: "month",
    maximum: 1_000_000_000_000,
    unit: "tokens per month",
    description: "Input and output, per month in Seoul time",
  },
} as const satisfies Record<string, LimitKind>;

type LimitKinds = typeof limitKinds;
export type LimitName = keyof LimitKinds;

export const limitNames = Object.keys(limitKinds) as LimitName[];

export const isLimitName = (name: string): name is LimitName => Object.hasOwn(limitKinds, name);

/** What is added to limits, each until its window ends, epoch milliseconds. */
export type LimitsExtra = Partial<Record<LimitName, { more: number; until: number }>>;

/** Who comes first where requests wait, the first one first. Null, or unset: `normal`. */
export const priorities = ["high", "normal", "low"] as const;

export type Priority = (typeof priorities)[number];

/** The one that comes last, of those that are set. */
export const lowestPriority = (all: readonly (Priority | null | undefined)[]): Priority | null =>
  priorities.findLast((priority) => all.includes(priority)) ?? null;

/** How much a key may use; null: no limit. `notify`: NOTICE_URL is told how much of these is used. */
export type KeyLimits = Record<LimitName, number | null> & {
  limits_extra?: LimitsExtra | null;
  priority?: Priority | null;
  notify?: true | null;
};

/** A limit at a time, with what is added to it until then. */
export function limitAt(limits: Readonly<KeyLimits>, name: LimitName, now: number): number | null {
  const limit = limits[name];
  const extra = limits.limits_extra?.[name];
  return limit === null || extra === undefined || now >= extra.until ? limit : limit + extra.more;
}

/** The limits at a time. */
export const limitsAt = (limits: KeyLimits, now: number): KeyLimits =>
  limits.limits_extra ? { ...perLimit((name) => limitAt(limits, name, now)), limits_extra: null } : limits;

const namesOf = (counts: Counts): readonly LimitName[] =>
  limitNames.filter((name) => limitKinds[name].counts === counts);

export const placeLimits = namesOf("places");
export const requestLimits = namesOf("requests");
export const tokenLimits = namesOf("tokens");

/** Whether one of these limits is set. */
export function hasLimit(limits: Readonly<KeyLimits>, names: readonly LimitName[] = limitNames): boolean {
  for (const name of names) if (limits[name] !== null) return true;
  return false;
}

/** Whether one of these limits is set for any of them. */
export function anyHasLimit(
  all: readonly { readonly limits: Readonly<KeyLimits> }[],
  names: readonly LimitName[] = limitNames,
): boolean {
  for (const { limits } of all) if (hasLimit(limits, names)) return true;
  return false;
}

/** A value for each kind. */
export const perLimit = <Value>(valueOf: (name: LimitName) => Value): Record<LimitName, Value> =>
  Object.fromEntries(limitNames.map((name) => [name, valueOf(name)])) as Record<LimitName, Value>;

/** Of each limit the tightest, and the lowest priority. */
export const tightestLimits = (all: readonly { readonly limits: Readonly<KeyLimits> }[]): KeyLimits => ({
  ...perLimit((name) => {
    const limit = Math.min(...all.map(({ limits }) => limits[name] ?? Infinity));
    return limit === Infinity ? null : limit;
  }),
  priority: lowestPriority(all.map(({ limits }) => limits.priority)),
});

/** What counts against such a limit frees with time, and not with the end of a request. */
type WindowLimit = {
  [Name in LimitName]: LimitKinds[Name]["window"] extends "now" ? never : Name;
}[LimitName];

const windowLimits = limitNames.filter((name): name is WindowLimit => limitKinds[name].window !== "now");

/** A value for each kind whose window is a stretch of time. */
export const perWindowLimit = <Value>(valueOf: (name: WindowLimit) => Value): Record<WindowLimit, Value> =>
  Object.fromEntries(windowLimits.map((name) => [name, valueOf(name)])) as Record<WindowLimit, Value>;
