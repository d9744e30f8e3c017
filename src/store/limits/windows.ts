import type { KeyLimits, LimitName } from "../../domain/keys.ts";

/** What counts against the limits of a key now. */
export interface KeyLoad {
  /** Requests in flight that hold a place. */
  inFlight: number;
  /** Tokens reserved for them. */
  reserved: number;
  minuteRequests: number;
  /** Tokens counted, without the reserved ones. */
  minuteTokens: number;
  dayTokens: number;
  monthTokens: number;
}

/** What is counted of one second of a key. */
export interface KeySecond {
  second: number;
  requests: number;
  tokens: number;
}

/**
 * The window of a minute, in whole seconds: the second in which it begins counts in full, so that no 60 seconds, wherever
 * they begin, have more than the limit.
 */
export const windowSeconds = 61;

/** When what happened in a second counts no more, epoch milliseconds. */
export const windowEndOf = (second: number): number => (second + windowSeconds) * 1000;

/** The one that frees last comes first, so that a client is not told to come back before it can be admitted. */
const order = [
  "tokens_per_month",
  "tokens_per_day",
  "tokens_per_minute",
  "requests_per_minute",
  "max_concurrency",
] as const satisfies readonly LimitName[];

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

export const isOfTokens = (name: LimitName): boolean => name.startsWith("tokens");

/** What counts against one limit; of tokens, the reserved ones too. */
export const usedOf = (load: KeyLoad, name: LimitName): number => used[name](load);

const used: Readonly<Record<LimitName, (load: KeyLoad) => number>> = {
  max_concurrency: ({ inFlight }) => inFlight,
  requests_per_minute: ({ minuteRequests }) => minuteRequests,
  tokens_per_minute: ({ minuteTokens, reserved }) => minuteTokens + reserved,
  tokens_per_day: ({ dayTokens, reserved }) => dayTokens + reserved,
  tokens_per_month: ({ monthTokens, reserved }) => monthTokens + reserved,
};

/** A key that is limited only in requests per minute gives nothing back. */
export const holdsPlace = (limits: KeyLimits): boolean =>
  limits.max_concurrency !== null ||
  limits.tokens_per_minute !== null ||
  limits.tokens_per_day !== null ||
  limits.tokens_per_month !== null;

/** Counts admitted requests. @param tokens of each. @returns the same load */
export function addRequests(load: KeyLoad, tokens: number, count: number): KeyLoad {
  load.inFlight += count;
  load.minuteRequests += count;
  load.reserved += count * tokens;
  return load;
}

/**
 * When enough of a minute's window has passed, epoch milliseconds.
 * @param seconds oldest first
 * @param excess by how much the limit is exceeded
 * @returns undefined if these seconds do not hold that much: the rest is reserved, or of requests that are being admitted
 */
export function minuteFreesAt(
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
