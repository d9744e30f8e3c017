import { perLimit } from "../../../src/domain/limits.ts";
import type { Admission } from "../../../src/domain/admissions.ts";
import type { KeyId, KeyLimits, LimitName } from "../../../src/domain/keys.ts";

/** One request as its client and the backend saw it. Times are the machine's, Infinity: not yet. */
export interface Observed {
  keyId: KeyId;
  limits: KeyLimits;
  /** Reserved for it. */
  tokens: number;
  instance: number;
  sentAt: number;
  /** When the instance asked for its admission, and when it knew the answer. */
  askedAt: number;
  decidedAt: number;
  refusedBy: Admission["refusedBy"];
  /** When the backend was done with it, or saw the connection break. */
  backendEndedAt: number;
  /** What the backend generated and reported; null if the response does not count. */
  generated: number | null;
  /** When the instance had counted it and given back what it held. */
  endedAt: number;
  /** Its count may have waited for the database then: a slow one holds up no response. */
  mayWait: boolean;
  /** When its instance was killed before that, or at once after it. */
  killedAt: number;
}

export interface Judge {
  /** After how long what a killed instance held is free again. */
  giveBackMs: number;
  /** How many instances there ever were. */
  instances: number;
}

const minuteMs = 60_000;
/** Whole seconds at both ends of the window of a minute, and what a request waits at most. */
const windowMs = 63_000;
/** How soon what a request gives back is free for others. */
const settleMs = 1000;
/** A process takes at most this part of what is left ahead of its requests. */
const ahead = 1 / 64;

const isAdmitted = ({ decidedAt, refusedBy }: Observed): boolean => decidedAt < Infinity && refusedBy === undefined;
const sum = (requests: readonly Observed[], of: (one: Observed) => number): number =>
  requests.reduce((total, one) => total + of(one), 0);
/** When the request cannot hold anything any more. */
const goneAt = ({ endedAt, killedAt }: Observed, { giveBackMs }: Judge): number =>
  killedAt < Infinity ? killedAt + giveBackMs : endedAt;
const limitOf = (name: LimitName, requests: readonly Observed[]): number | undefined => {
  const values = requests.map(({ limits }) => limits[name]);
  return values.includes(null) ? undefined : Math.max(...values.filter((one) => one !== null));
};

/** @returns a sentence for each thing that must not have happened */
export function findViolations(observed: readonly Observed[], judge: Judge): string[] {
  const found: string[] = [];
  for (const own of Map.groupBy(observed, ({ keyId }) => keyId).values()) {
    const admitted = own.filter(isAdmitted).toSorted((a, b) => a.decidedAt - b.decidedAt);
    for (const one of admitted) {
      found.push(
        ...overAtOnce(one, admitted, own),
        ...overInMinute(one, admitted, own),
        ...overWhenAdmitted(one, admitted, own),
      );
    }
    found.push(...overInAll(admitted));
    for (const one of own) if (one.refusedBy !== undefined) found.push(...refusedWithoutCause(one, own, judge));
  }
  return found;
}

/** The backend has too many of the key at once, or they have reserved too much. */
function overAtOnce(one: Observed, admitted: readonly Observed[], own: readonly Observed[]): string[] {
  const running = admitted.filter(
    ({ decidedAt, backendEndedAt }) => decidedAt <= one.decidedAt && one.decidedAt < backendEndedAt,
  );
  const places = limitOf("max_concurrency", [...running, ...around(one, own)]);
  if (places !== undefined && running.length > places) {
    return [`key ${one.keyId}: ${running.length} in flight, ${places} allowed`];
  }
  return tokenLimits.flatMap((name) => {
    const limit = limitOf(name, [...running, ...around(one, own)]);
    if (limit === undefined) return [];
    const reserved = sum(running, ({ tokens }) => Math.min(tokens, limit));
    return reserved > limit ? [`key ${one.keyId}: ${reserved} reserved at once, ${name} is ${limit}`] : [];
  });
}

const tokenLimits = ["tokens_per_minute", "tokens_per_day", "tokens_per_month"] as const;

/** More were admitted than the limit within 60 seconds, of which this one is the last. All of them surely lie inside. */
function overInMinute(one: Observed, admitted: readonly Observed[], own: readonly Observed[]): string[] {
  const inside = admitted.filter(
    ({ askedAt, decidedAt }) => askedAt > one.decidedAt - minuteMs && decidedAt <= one.decidedAt,
  );
  const limit = limitOf("requests_per_minute", [...inside, ...around(one, own)]);
  return limit !== undefined && inside.length > limit
    ? [`key ${one.keyId}: ${inside.length} requests in a minute, ${limit} allowed`]
    : [];
}

/**
 * It was admitted although what surely counted before left no room for it, by the limits that it came with: or by those of
 * a request beside it, where they were changed just then.
 */
function overWhenAdmitted(one: Observed, admitted: readonly Observed[], own: readonly Observed[]): string[] {
  const limits = perLimit((name) => limitOf(name, around(one, own)) ?? null);
  const before = admitted.filter(({ decidedAt }) => decidedAt < one.askedAt);
  const { requests_per_minute: requests, max_concurrency: places } = limits;
  const found: string[] = [];
  const recent = before.filter(({ askedAt }) => askedAt > one.decidedAt - minuteMs).length;
  if (requests !== null && recent >= requests) {
    found.push(`key ${one.keyId}: admitted after ${recent} in a minute, ${requests} allowed`);
  }
  const beside = before.filter(({ backendEndedAt }) => backendEndedAt > one.decidedAt);
  if (places !== null && beside.length >= places) {
    found.push(`key ${one.keyId}: admitted beside ${beside.length}, ${places} allowed`);
  }
  for (const name of tokenLimits) {
    const limit = limits[name];
    if (limit === null || one.tokens === 0) continue;
    const from = name === "tokens_per_minute" ? one.decidedAt - minuteMs : 0;
    const counted = sum(
      before.filter(({ endedAt, backendEndedAt }) => endedAt < one.askedAt && backendEndedAt > from),
      ({ generated }) => generated ?? 0,
    );
    const reserved = sum(
      beside.filter((other) => other.limits[name] !== null),
      ({ tokens }) => tokens,
    );
    if (counted + reserved + Math.min(one.tokens, limit) > limit) {
      found.push(
        `key ${one.keyId}: ${one.tokens} tokens beside ${counted} counted and ${reserved} reserved, ${name} is ${limit}`,
      );
    }
  }
  return found;
}

/** Requests that were decided at the same time: where limits are changed just then, the newest may be those of one of them. */
const around = (one: Observed, own: readonly Observed[]): Observed[] =>
  own.filter(
    ({ sentAt, decidedAt, killedAt }) => sentAt <= one.decidedAt && Math.min(decidedAt, killedAt) >= one.sentAt,
  );

/** What the handbook says: a limit of tokens is exceeded only by what requests use beyond what they reserved. */
function overInAll(admitted: readonly Observed[]): string[] {
  return (["tokens_per_day", "tokens_per_month"] as const).flatMap((name) => {
    const limit = limitOf(name, admitted);
    if (limit === undefined) return [];
    const generated = sum(admitted, (one) => one.generated ?? 0);
    const beyond = sum(admitted, (one) => Math.max(0, (one.generated ?? 0) - one.tokens));
    const keyId = admitted[0]?.keyId;
    return generated > limit + beyond
      ? [`key ${keyId}: ${generated} tokens, ${name} is ${limit} and ${beyond} beyond`]
      : [];
  });
}

/** Even with all that may have counted when it was refused, it fitted. */
function refusedWithoutCause(one: Observed, own: readonly Observed[], judge: Judge): string[] {
  const name = one.refusedBy === "unavailable" ? undefined : one.refusedBy;
  const judging = around(one, own).flatMap(({ limits }) => (name === undefined ? [] : (limits[name] ?? [])));
  const limit = judging.length === 0 ? null : Math.min(...judging);
  if (name === undefined || limit === null)
    return [`key ${one.keyId}: refused by ${one.refusedBy}, which it does not have`];
  // A request that was not answered, or whose answer was lost with its instance, may count as well.
  const others = own.filter((other) => other !== one && other.refusedBy === undefined && other.sentAt < one.decidedAt);
  const taken = judge.instances * Math.ceil(limit * ahead);
  const held = others.filter((other) => goneAt(other, judge) > one.askedAt - settleMs);
  const most: Record<LimitName, () => number> = {
    max_concurrency: () => held.length + 1,
    requests_per_minute: () => recentOf(others, one).length + taken + 1,
    tokens_per_minute: () => tokensOf(recentOf(others, one), held) + taken + Math.min(one.tokens, limit),
    tokens_per_day: () => tokensOf(others, held) + taken + Math.min(one.tokens, limit),
    tokens_per_month: () => tokensOf(others, held) + taken + Math.min(one.tokens, limit),
  };
  const counted = most[name]();
  return counted <= limit ? [`key ${one.keyId}: refused by ${name} ${limit}, at most ${counted} counted with it`] : [];
}

const recentOf = (others: readonly Observed[], one: Observed): Observed[] =>
  others.filter(
    (other) =>
      Math.min(other.decidedAt, other.endedAt, other.killedAt) > one.askedAt - windowMs ||
      other.endedAt > one.askedAt - windowMs,
  );

/** Of one that ended what was counted, of one that may be held or was cut by a kill what it reserved; it may be both. */
const tokensOf = (counted: readonly Observed[], held: readonly Observed[]): number =>
  sum(
    [...new Set([...counted, ...held])],
    (one) => (one.generated ?? 0) + (held.includes(one) || one.killedAt < Infinity ? one.tokens : 0),
  );
