import type { KeyLimits, LimitName } from "../../domain/keys.ts";
import {
  type Counts,
  hasLimit,
  limitKinds,
  type LimitKind,
  limitNames,
  perLimit,
  placeLimits,
  tokenLimits,
} from "../../domain/limits.ts";
import { type Window, windows } from "../../time/windows.ts";

/** What counts in a window: `minuteRequests`, `dayTokens`. */
type CountedIn<Kind extends LimitKind> = Kind["window"] extends "now"
  ? never
  : `${Kind["window"]}${Capitalize<Kind["counts"]>}`;
type CountedOf<Name extends LimitName> = Name extends LimitName ? CountedIn<(typeof limitKinds)[Name]> : never;
/** The sums that limits are compared with. Tokens are without the reserved ones. */
export type Counted = CountedOf<LimitName>;

/** What counts against the limits of a key now. */
export interface KeyLoad extends Record<Counted, number> {
  /** Requests in flight that hold a place. */
  inFlight: number;
  /** Tokens reserved for them. */
  reserved: number;
}

/** Undefined for a kind that is compared with what is held. */
export const countedOf = ({ counts, window }: { counts: Counts; window: Window }): Counted | undefined =>
  window === "now" ? undefined : (`${window}${counts.charAt(0).toUpperCase()}${counts.slice(1)}` as Counted);

const counted = limitNames.map((name) => countedOf(limitKinds[name])).filter((name) => name !== undefined);

export const noLoad: Readonly<KeyLoad> = {
  inFlight: 0,
  reserved: 0,
  ...(Object.fromEntries(counted.map((name) => [name, 0])) as Record<Counted, number>),
};

/** What is counted of one second of a key. */
export interface KeySecond {
  second: number;
  requests: number;
  tokens: number;
}

const windowLength = (name: LimitName): number => windows.indexOf(limitKinds[name].window);

/** The one that frees last comes first, so that a client is not told to come back before it can be admitted. */
const order = limitNames.toReversed().toSorted((one, other) => windowLength(other) - windowLength(one));

/**
 * The limit that refuses a request; undefined if none does. A request that reserves more tokens than a limit allows is
 * admitted while nothing else counts against it. One that reserves none is refused by no limit of tokens.
 * @param times how many such requests would have to fit
 */
export function findExceeded(load: KeyLoad, limits: KeyLimits, tokens: number, times = 1): LimitName | undefined {
  return order.find((name) => {
    const limit = limits[name];
    if (limit === null) return false;
    const added = times * (isOfTokens(name) ? Math.min(tokens, limit) : 1);
    return added > 0 && usedOf(load, name) + added > limit;
  });
}

export const isOfTokens = (name: LimitName): boolean => limitKinds[name].counts === "tokens";

/** What counts against one limit; of tokens, the reserved ones too. */
export const usedOf = (load: KeyLoad, name: LimitName): number => used[name](load);

const used = perLimit((name): ((load: KeyLoad) => number) => {
  const kind = limitKinds[name];
  const sum = countedOf(kind);
  if (sum === undefined) return ({ inFlight }) => inFlight;
  return kind.counts === "tokens" ? (load) => load[sum] + load.reserved : (load) => load[sum];
});

/** Whether nothing is left of one of the limits. */
export const isAtLimit = (load: KeyLoad, limits: KeyLimits): boolean =>
  limitNames.some((name) => {
    const limit = limits[name];
    return limit !== null && usedOf(load, name) >= limit;
  });

/** Of the limits of tokens. */
export const leastTokensLeft = (load: KeyLoad, limits: KeyLimits): number =>
  Math.min(...tokenLimits.map((name) => (limits[name] ?? Infinity) - usedOf(load, name)));

/** What of it is reserved for running requests, and not counted yet. */
export const reservedOf = (load: KeyLoad, name: LimitName): number => (isOfTokens(name) ? load.reserved : 0);

/** A key that is limited only in requests per minute gives nothing back. */
export const holdsPlace = (limits: KeyLimits): boolean =>
  hasLimit(limits, placeLimits) || hasLimit(limits, tokenLimits);

/** Counts admitted requests. @param tokens of each. @returns the same load */
export function addRequests(load: KeyLoad, tokens: number, count: number): KeyLoad {
  load.inFlight += count;
  load.minuteRequests += count;
  load.reserved += count * tokens;
  return load;
}
