// What counts against the limits of a key or team, which requests they allow, and how long until they allow one that they refuse.

import type { KeyLimits, LimitName } from "../../domain/keys.ts";
import {
  type Counts,
  limitKinds,
  type LimitKind,
  limitNames,
  perLimit,
  placeLimits,
  tokenLimits,
} from "../../domain/limits.ts";
import { minuteWindowSeconds, type Window, windowResetAt, windows } from "../../time/seoul.ts";

/** What counts in a window: `minuteRequests`, `dayTokens`. */
type CountedIn<Kind extends LimitKind> = Kind["window"] extends "now"
  ? never
  : `${Kind["window"]}${Capitalize<Kind["counts"]>}`;
type CountedOf<Name extends LimitName> = Name extends LimitName ? CountedIn<(typeof limitKinds)[Name]> : never;
/** The sums that limits are compared with. Tokens are without the reserved ones. */
export type Counted = CountedOf<LimitName>;

/** What counts against the limits of a key or team now. */
export interface KeyLoad extends Record<Counted, number> {
  /** Requests in flight that hold a place. */
  inFlight: number;
  /** Tokens reserved for them. */
  reserved: number;
}

const countedIn = ({ counts, window }: { counts: Counts; window: Window }): Counted | undefined =>
  window === "now" ? undefined : (`${window}${counts.charAt(0).toUpperCase()}${counts.slice(1)}` as Counted);

/** The sum that a limit is compared with; undefined for one that is compared with what is held. */
export const countedOf = perLimit((name) => countedIn(limitKinds[name]));

const counted = Object.values(countedOf).filter((name) => name !== undefined);

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

/** The limits of one subject of a request, and what counts against them. */
export interface Bound {
  limits: KeyLimits;
  load: KeyLoad;
}

interface Exceeded {
  name: LimitName;
  /** Whose, by its place among the bounds. */
  at: number;
}

/**
 * The limit that refuses a request; undefined if none does. A request that reserves more tokens than a limit allows is
 * admitted while nothing else counts against it. One that reserves none is refused by no limit of tokens.
 * @param times how many such requests would have to fit
 */
export function findExceeded(bounds: readonly Bound[], tokens: number, times = 1): Exceeded | undefined {
  for (const name of order) {
    for (const [at, { limits, load }] of bounds.entries()) {
      const limit = limits[name];
      if (limit === null) continue;
      const added = times * (limitKinds[name].counts === "tokens" ? Math.min(tokens, limit) : 1);
      if (added > 0 && usedOf(load, name) + added > limit) return { name, at };
    }
  }
  return undefined;
}

/** What counts against one limit; of tokens, the reserved ones too, unless only those are asked for that are charged. */
export function usedOf(load: KeyLoad, name: LimitName, isCharged = false): number {
  const sum = countedOf[name];
  if (sum === undefined) return load.inFlight;
  return load[sum] + (isCharged || limitKinds[name].counts !== "tokens" ? 0 : load.reserved);
}

/** What is left of the tightest limit of tokens. */
const leastTokensLeft = (bounds: readonly Bound[]): number =>
  Math.min(
    ...bounds.flatMap(({ limits, load }) => tokenLimits.map((name) => (limits[name] ?? Infinity) - usedOf(load, name))),
  );

/** Of these a request gives back what it holds; a key that is limited only in requests per minute needs no lease. */
export const leaseLimits = [...placeLimits, ...tokenLimits];

/** The same with another admitted request; that before is still of its own request. */
export function withRequest(bounds: readonly Bound[], tokens: number): Bound[] {
  const after: Bound[] = [];
  for (const { limits, load } of bounds) {
    const [inFlight, minuteRequests] = [load.inFlight + 1, load.minuteRequests + 1];
    after.push({ limits, load: { ...load, inFlight, minuteRequests, reserved: load.reserved + tokens } });
  }
  return after;
}

/** A request as the limits judge it. */
export interface Judged {
  /** Undefined: it is admitted. */
  refusedBy: LimitName | undefined;
  /** Whose limit that is, by its place among the bounds. */
  at: number;
  /** What it reserves then. */
  tokens: number;
  /** What counts, the request included if it is admitted. */
  bounds: readonly Bound[];
}

/** What a request asks for. */
export interface Size {
  tokens: number;
  /** It takes less than `tokens`, but no less than this, where that is all that is left. */
  leastTokens?: number | undefined;
}

/** What each request reserves that may come after these. */
export function tokensAhead(requests: readonly Size[]): number {
  let most = 0;
  for (const { tokens } of requests) most = Math.max(most, tokens);
  return most;
}

/**
 * Whether all limits allow a request, and for how many tokens. Where nobody said how much it may generate, what is left is as
 * good a guess. On PostgreSQL `tollgate_lease_size` does the same.
 */
export function decide(bounds: readonly Bound[], { tokens, leastTokens = Infinity }: Size): Judged {
  const { name: refusedBy, at = 0 } = findExceeded(bounds, tokens) ?? {};
  if (refusedBy === undefined) return { refusedBy, at, tokens, bounds: withRequest(bounds, tokens) };
  const left = leastTokensLeft(bounds);
  if (limitKinds[refusedBy].counts !== "tokens" || left < leastTokens) return { refusedBy, at, tokens, bounds };
  return decide(bounds, { tokens: left });
}

/**
 * The limits of a process that decides alone: what others hold, and its share of the limit. What is counted already is
 * nobody's, so the shares are of what that leaves.
 * @param others what counts that is not its own
 * @param processes how many share; Infinity: nobody knows, so it gets one request
 */
export const sharesOf = (limits: KeyLimits, others: KeyLoad, processes: number): KeyLimits =>
  perLimit((name) => {
    const limit = limits[name];
    if (limit === null) return null;
    const used = usedOf({ ...others, inFlight: 0, reserved: 0 }, name);
    return Math.min(limit, usedOf(others, name) + Math.max(1, Math.ceil((limit - used) / processes)));
  });

/** Which requests the limits allow, in order. On PostgreSQL `tollgate_take_leases` does the same. */
export function judge(bounds: readonly Bound[], requests: readonly Size[]): Judged[] {
  const judged: Judged[] = [];
  for (const request of requests) judged.push(decide(judged.at(-1)?.bounds ?? bounds, request));
  return judged;
}

/** How long until a refused request may be admitted; undefined if that depends on what others hold. */
export function waitOf(
  { refusedBy, at: index, bounds, tokens }: Judged,
  { now, seconds = [] }: { now: number; seconds?: readonly KeySecond[] | undefined },
): number | undefined {
  const bound = bounds[index];
  if (refusedBy === undefined || bound === undefined) return 0;
  const { limits, load } = bound;
  const limit = limits[refusedBy] ?? 0;
  const { counts, window } = limitKinds[refusedBy];
  const excess = usedOf(load, refusedBy) + (counts === "tokens" ? Math.min(tokens, limit) : 1) - limit;
  const freesAt = (): number | undefined => {
    if (window === "now") return undefined;
    // What the seconds do not have yet was admitted with it, and so in this second.
    if (window === "minute" && counts === "requests")
      return minuteFreesAt(seconds, counts, excess) ?? windowEndOf(Math.floor(now / 1000));
    if (window === "minute") return minuteFreesAt(seconds, counts, excess);
    // Without the reserved tokens it may fit.
    return excess <= load.reserved ? undefined : windowResetAt(window, now);
  };
  const at = freesAt();
  return at === undefined ? undefined : Math.max(1, at - now);
}

/** When what happened in a second counts no more, epoch milliseconds. */
const windowEndOf = (second: number): number => (second + minuteWindowSeconds) * 1000;

/**
 * When enough of a minute's window has passed, epoch milliseconds.
 * @param seconds oldest first
 * @param excess by how much the limit is exceeded
 * @returns undefined if these seconds do not hold that much: the rest is reserved, or of requests that are being admitted
 */
function minuteFreesAt(
  seconds: readonly KeySecond[],
  counter: "requests" | "tokens",
  excess: number,
): number | undefined {
  let freed = 0;
  for (const one of seconds) {
    freed += one[counter];
    if (freed >= excess) return windowEndOf(one.second);
  }
  return undefined;
}
