import { limitKinds, limitNames } from "../../../src/domain/limits.ts";
import type { Admission } from "../../../src/domain/admissions.ts";
import type { KeyLimits, LimitName, Subject, SubjectId } from "../../../src/domain/keys.ts";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { ReportedUse } from "./messages.ts";

/** One request as its client and the backend saw it. Times are the machine's, Infinity: not yet. */
export interface Observed {
  keyId: SubjectId;
  limits: KeyLimits;
  /** Those with limits: its key, its team, or both; and all. */
  subjects: readonly Subject[];
  ids: readonly SubjectId[];
  /** Reserved for it. */
  tokens: number;
  instance: number;
  sentAt: number;
  /** When the instance asked for its admission, and when it knew the answer. */
  askedAt: number;
  decidedAt: number;
  refusedBy: Admission["refusedBy"];
  /** Which of the subjects that was. */
  at: number;
  /** What its response reports of each subject, and of this one. */
  reports: readonly ReportedUse[];
  used: ReportedUse;
  /** Its client left before the backend had it: it gives all of it back. */
  isLeft: boolean;
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
/** How old what is reported may be: it counted when requests were taken ahead. */
const aheadMs = 1000;
/** So long after a kill, at least, what its requests had reserved counts: it is charged to a time before it is released. */
const chargedMs = 40_000;
/** How much later a report may still have what ended: a stopped instance gives nothing back, nor does a busy machine. */
const reportMs = 3000;

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

/**
 * The requests as each of their subjects sees them, which has limits or not. One that another subject refused, it does not
 * see.
 */
export const viewsOf = (observed: readonly Observed[]): Observed[] =>
  observed.flatMap((one) => {
    const { ids, subjects, refusedBy } = one;
    const viewOf = (keyId: SubjectId, limits: KeyLimits, at: number): Observed =>
      Object.assign({}, one, { keyId, limits, used: one.reports[at] ?? {}, at });
    const all = subjects.map(({ id, limits }, at) => viewOf(id, limits, at));
    const seen = refusedBy === undefined ? all : all.filter(({ at }) => at === one.at);
    const isWithout = (id: SubjectId): boolean => refusedBy === undefined && subjects.every((other) => other.id !== id);
    return [...seen, ...ids.filter(isWithout).map((id) => viewOf(id, noLimits, -1))];
  });

/** @returns a sentence for each thing that must not have happened */
export function findViolations(observed: readonly Observed[], given: Judge): string[] {
  const found: string[] = [];
  for (const own of Map.groupBy(viewsOf(observed), ({ keyId }) => keyId).values()) {
    // A process takes ahead for each group of subjects.
    const groups = new Set(own.map(({ subjects }) => subjects.map(({ id }) => id).join()));
    const judge = { ...given, instances: given.instances * groups.size };
    const admitted = own.filter(isAdmitted).toSorted((a, b) => a.decidedAt - b.decidedAt);
    for (const one of admitted) {
      found.push(
        ...overAtOnce(one, admitted, own),
        ...overInMinute(one, admitted, own),
        ...overWhenAdmitted(one, admitted, own),
      );
    }
    if (admitted.length > 0) found.push(...overInAll(admitted));
    for (const one of own) {
      if (one.refusedBy !== undefined) found.push(...refusedWithoutCause(one, own, judge));
      found.push(...reportedWrongly(one, admitted, own, judge));
    }
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

const tokenLimits = ["tokens_per_minute", "tokens_per_day", "tokens_per_week", "tokens_per_month"] as const;

/** More were admitted than the limit within 60 seconds, of which this one is the last. All of them surely lie inside. */
function overInMinute(one: Observed, admitted: readonly Observed[], own: readonly Observed[]): string[] {
  const inside = admitted.filter(
    ({ askedAt, decidedAt, isLeft }) => askedAt > one.decidedAt - minuteMs && decidedAt <= one.decidedAt && !isLeft,
  );
  const limit = limitOf("requests_per_minute", [...inside, ...around(one, own)]);
  return limit !== undefined && inside.length > limit
    ? [`key ${one.keyId}: ${inside.length} requests in a minute, ${limit} allowed`]
    : [];
}

/** What a request takes of a limit. */
const needOf = (name: LimitName, { tokens }: Observed, limit: number): number =>
  isOfTokens(name) ? Math.min(tokens, limit) : 1;

const isOfTokens = (name: LimitName): boolean => limitKinds[name].counts === "tokens";

const isReported = ({ used }: Observed): boolean => Object.values(used).some((value) => value !== undefined);

/**
 * What surely counted against each limit from `since` until the request was decided, without the request.
 * @param usedSince from then on, what others used beyond what they had reserved may not have counted
 */
function leastCounted(
  one: Observed,
  admitted: readonly Observed[],
  since: number,
  usedSince = since,
): Record<LimitName, number> {
  // What an instance admitted alone, because the database was slow, others do not know at once.
  const before = admitted.filter((other) => other !== one && other.decidedAt < since && isReported(other));
  /** @param cutFrom what was cut by a kill since then counts as it was reserved: it may have been used */
  const tokensFrom = (from: number, cutFrom: number) => (other: Observed) => {
    const { tokens, backendEndedAt, killedAt } = other;
    const counted = other.generated ?? 0;
    if (backendEndedAt > one.decidedAt) return tokens;
    if (other.endedAt < usedSince && !other.mayWait) return backendEndedAt > from ? counted : 0;
    if (killedAt < Infinity) return backendEndedAt >= killedAt && killedAt > cutFrom ? tokens : 0;
    // It is counted, or still reserved, or both.
    return backendEndedAt > from ? Math.min(tokens, counted) : 0;
  };
  const inAll = sum(before, tokensFrom(0, Infinity));
  return {
    max_concurrency: before.filter(({ backendEndedAt }) => backendEndedAt > one.decidedAt).length,
    requests_per_minute: before.filter(({ askedAt, isLeft }) => askedAt > one.decidedAt - minuteMs && !isLeft).length,
    tokens_per_minute: sum(before, tokensFrom(one.decidedAt - minuteMs, one.decidedAt - chargedMs)),
    tokens_per_day: inAll,
    tokens_per_week: inAll,
    tokens_per_month: inAll,
  };
}

/**
 * It was admitted although what surely counted before left no room for it, by the limits that it came with: or by those of
 * a request beside it, where they were changed just then.
 */
function overWhenAdmitted(one: Observed, admitted: readonly Observed[], own: readonly Observed[]): string[] {
  const counted = leastCounted(one, admitted, one.askedAt, oldestAhead(one));
  return limitNames.flatMap((name) => {
    const limit = limitOf(name, around(one, own));
    if (limit === undefined) return [];
    const need = needOf(name, one, limit);
    return need > 0 && counted[name] + need > limit
      ? [`key ${one.keyId}: ${need} admitted beside ${counted[name]}, ${name} is ${limit}`]
      : [];
  });
}

/** Since when what the request got may have been taken ahead; with a limit of places, nothing is. */
const oldestAhead = ({ askedAt, limits }: Observed): number =>
  askedAt - (limits.max_concurrency === null ? aheadMs : 0);

/** What it reports cannot be, or contradicts what became of it. */
function reportedWrongly(
  one: Observed,
  admitted: readonly Observed[],
  own: readonly Observed[],
  judge: Judge,
): string[] {
  const since = oldestAhead(one);
  const least = leastCounted(one, admitted, since);
  const most = mostCounted(one, own, judge, since - reportMs);
  return limitNames.flatMap((name) => {
    const used = one.used[name];
    const judging = around(one, own).flatMap(({ limits }) => limits[name] ?? []);
    if (used === undefined) return [];
    const included = one.refusedBy !== undefined ? 0 : isOfTokens(name) ? one.tokens : 1;
    const left = judging.map((limit) => limit - used + included - needOf(name, one, limit));
    const isTooMuch =
      one.refusedBy === undefined && left.every((rest) => rest < 0) && (!isOfTokens(name) || one.tokens > 0);
    const isTooLittle = one.refusedBy === name && left.every((rest) => rest >= 0);
    const [low, high] = [least[name] + included, most[name] + included];
    return isTooMuch || isTooLittle || used < low || used > high
      ? [
          `key ${one.keyId}: reports ${used} of ${name}, ${low} to ${high} counted, ${one.refusedBy ?? "admitted"} at ${judging.join()}`,
        ]
      : [];
  });
}

/** Requests that were decided at the same time: where limits are changed just then, the newest may be those of one of them. */
const around = (one: Observed, own: readonly Observed[]): Observed[] =>
  own.filter(
    ({ sentAt, decidedAt, killedAt }) => sentAt <= one.decidedAt && Math.min(decidedAt, killedAt) >= one.sentAt,
  );

/** What the handbook says: a limit of tokens is exceeded only by what requests use beyond what they reserved. */
function overInAll(admitted: readonly Observed[]): string[] {
  return (["tokens_per_day", "tokens_per_week", "tokens_per_month"] as const).flatMap((name) => {
    const limit = limitOf(name, admitted);
    if (limit === undefined || admitted.length === 0) return [];
    // What a killed instance had not counted yet is not counted for a day.
    const counted = admitted.filter(({ endedAt }) => endedAt < Infinity);
    const generated = sum(counted, (one) => one.generated ?? 0);
    const beyond = sum(admitted, (one) => Math.max(0, (one.generated ?? 0) - Math.min(one.tokens, limit)));
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
  const counted = mostCounted(one, own, judge, one.askedAt - settleMs)[name] + needOf(name, one, limit);
  return counted <= limit ? [`key ${one.keyId}: refused by ${name} ${limit}, at most ${counted} counted with it`] : [];
}

/** All that may have counted against each limit when the request was decided, without the request. @param since what ended before it is given back */
function mostCounted(one: Observed, own: readonly Observed[], judge: Judge, since: number): Record<LimitName, number> {
  // A request that was not answered, or whose answer was lost with its instance, may count as well.
  const others = own.filter((other) => other !== one && other.refusedBy === undefined && other.sentAt <= one.decidedAt);
  const held = others.filter((other) => goneAt(other, judge) > since);
  const recent = recentOf(others, since);
  const counting = recent.filter(({ isLeft, endedAt, killedAt }) => !isLeft || endedAt > since || killedAt < Infinity);
  /** What was taken ahead, and by how much what was taken ahead is larger than the requests that got it. */
  const aheadOf = (name: LimitName, ofEach: number): number =>
    (judge.instances + ofEach) * Math.ceil(Math.max(...own.map(({ limits }) => limits[name] ?? 0)) * ahead);
  const tokens = (name: LimitName, counted: readonly Observed[]): number =>
    tokensOf(counted, held) + aheadOf(name, one.limits.max_concurrency === null ? held.length + 1 : 0);
  return {
    max_concurrency: held.length,
    requests_per_minute: counting.length + aheadOf("requests_per_minute", 0),
    tokens_per_minute: tokens("tokens_per_minute", recent),
    tokens_per_day: tokens("tokens_per_day", others),
    tokens_per_week: tokens("tokens_per_week", others),
    tokens_per_month: tokens("tokens_per_month", others),
  };
}

const recentOf = (others: readonly Observed[], since: number): Observed[] =>
  others.filter(
    (other) =>
      Math.min(other.decidedAt, other.endedAt, other.killedAt) > since - windowMs || other.endedAt > since - windowMs,
  );

/** Of one that ended what was counted, of one that may be held or was cut by a kill what it reserved; it may be both. */
const tokensOf = (counted: readonly Observed[], held: readonly Observed[]): number =>
  sum(
    [...new Set([...counted, ...held])],
    (one) => (one.generated ?? 0) + (held.includes(one) || one.killedAt < Infinity ? one.tokens : 0),
  );

/** What surely counts of the minute for a key with such a limit, when nothing runs any more and all of it is given back. */
export function leastCharged(own: readonly Observed[], now: number): number {
  const isLimited = own.every(({ limits }) => limits.tokens_per_minute !== null);
  const recent = own.filter((one) => isAdmitted(one) && isReported(one) && one.backendEndedAt > now - chargedMs);
  return sum(isLimited ? recent : [], ({ tokens, generated, backendEndedAt, killedAt, endedAt, mayWait }) =>
    endedAt < Infinity && !mayWait ? (generated ?? 0) : killedAt < Infinity && backendEndedAt >= killedAt ? tokens : 0,
  );
}
