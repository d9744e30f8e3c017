// What this process has of each key: its lease, and what requests get of that.

import type { InstanceWatch } from "./instance-watch.ts";
import { type KeyLoad, needsLease, noLoad, type Size, usedOf, withRequest } from "../store/limits/windows.ts";
import type { LeaseRequest, LimitStore } from "../store/limits/contract.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { dayNumberOf } from "../time/seoul.ts";
import { minuteWindowSeconds } from "../time/windows.ts";
import type { KeyId, KeyLimits, LimitName } from "../domain/keys.ts";
import { hasLimit, limitNames, placeLimits, requestLimits, tokenLimits } from "../domain/limits.ts";
import { type Admission, isWorthWaiting } from "../domain/admissions.ts";

/** What holds while the database does not answer: this process's share of the limits, nothing, or no request is admitted. */
export type LimitsFallback = "local" | "open" | "closed";

export interface AdmissionsOptions {
  store: LimitStore;
  monotonic: MonotonicClock;
  /** The store's. */
  clock: WallClock;
  log: Log;
  fallback?: LimitsFallback;
  /** Whether counts wait for the database: what they cover stays reserved. */
  areCountsWaiting?: () => boolean;
  /** How long a request waits for the database. */
  waitLimitMs?: number;
  beatMs?: number;
  /** After how long without a beat a process counts as dead. */
  deadAfterMs?: number;
  /** How many processes this machine runs, whether or not the database lists them. */
  processes?: number;
}

export interface State extends Required<Omit<AdmissionsOptions, "clock" | "beatMs">> {
  instance: string;
  /** Of the latest batch. */
  version: number;
  leases: Map<KeyId, KeyLease>;
  /** Those that may have something to write, or something ahead. */
  changed: Set<KeyLease>;
  /** The batch that is under way. */
  writing: readonly LeaseWork[];
  /** Those with tokens of requests that have ended, and whose counts wait. */
  uncounted: Set<KeyLease>;
  loop: Promise<void> | undefined;
  /** What ended is to be written, and not only what waits. */
  isUpkeepDue: boolean;
  upkeepTimer: Timer | undefined;
  /** When it was last written, by the monotonic clock. */
  upkeptAt: number;
  /** Runs while requests wait. */
  waitTimer: Timer | undefined;
  /** When the first of those came that the next batch takes, by the monotonic clock; undefined if there are none. */
  waitingSince: number | undefined;
  degraded: boolean;
  /** Why the latest batch failed, or has no reply yet. */
  failure: string;
  /** Processes that live, this one included, when they were last counted; Infinity: they never were. */
  instances: number;
  /** By how much the database's clock is ahead of the monotonic one: that of this machine may be anything. */
  aheadMs: number;
  closed: boolean;
  /** Whether the database lists this process, or has failed to. */
  isListed: boolean;
  watch: InstanceWatch;
  /** Has what changed in leases written: at once, or a little later. */
  wake: (isUrgent: boolean) => void;
}

/** What is asked for one request. */
export interface Asked extends Size {
  limits: KeyLimits;
  /** It asks again if it is worth waiting: then a refusal does not count. */
  mayWait: boolean;
  /** It was admitted before, and has just given that back: it comes before others. */
  isAdmitted: boolean;
}

/** A request that waits for the database. */
export interface WaitingRequest extends Asked {
  /** How often it was refused only because of what other processes hold. */
  tries: number;
  /** It was decided without the database, while a batch with it was under way. */
  isDecided: boolean;
  settled: PromiseWithResolvers<Admission>;
}

/** Requests that may come without the database, within the second in which it has counted them. */
interface Ahead {
  limits: KeyLimits;
  /** Reserved for each. */
  tokens: number;
  left: number;
  /** What counts before the next one. */
  load: KeyLoad;
  /** Since the epoch, by the database's clock. */
  second: number;
  /** When that second ends at the latest, by the monotonic clock. */
  endsAt: number;
}

/** What this process has of one key. */
export interface KeyLease {
  keyId: KeyId;
  /** The limits that the latest request came with. */
  limits: KeyLimits;
  /** Held by requests in flight: the database has at least as much. */
  places: number;
  tokens: number;
  ahead: Ahead | undefined;
  waiting: WaitingRequest[];
  /** What the database has to add to the requests of a second. */
  corrections: { second: number; requests: number }[];
  /** Those of the batch that is under way. */
  sent: LeaseRequest["corrections"];
  /** Refusals that it has not counted. */
  refused: number;
  /** It has more than is held. */
  isDue: boolean;
  /** Its latest answer: what counted at a time, but for what was held here. */
  known: { others: KeyLoad; at: number };
  /** Of requests that ended in a second while their counts waited, or the database was away: still among `tokens`. */
  uncounted: { second: number; tokens: number }[];
  /** Requests in a second, and how many the latest that found none ahead asked for. */
  pace: { second: number; requests: number; wanted: number };
}

export const newLease = (keyId: KeyId, limits: KeyLimits): KeyLease => ({
  keyId,
  limits,
  places: 0,
  tokens: 0,
  ahead: undefined,
  waiting: [],
  corrections: [],
  sent: [],
  refused: 0,
  isDue: false,
  known: { others: noLoad, at: 0 },
  uncounted: [],
  pace: { second: 0, requests: 0, wanted: 0 },
});

/** What is written of one key in a batch. */
export interface LeaseWork {
  lease: KeyLease;
  waiting: readonly WaitingRequest[];
  request: LeaseRequest;
}

/** Whether the database does not know all that there is to know. */
export const needsWrite = ({ waiting, corrections, refused, isDue }: KeyLease): boolean =>
  isDue || waiting.length > 0 || corrections.length > 0 || refused > 0;

/** @param now by the monotonic clock. @returns how much it reserves, and what counts with it; undefined if none is left */
export function takeAhead(
  lease: KeyLease,
  { limits, tokens, now }: { limits: KeyLimits; tokens: number; now: number },
): { tokens: number; load: KeyLoad; second: number } | undefined {
  const { ahead } = lease;
  if (ahead === undefined || ahead.left === 0 || now >= ahead.endsAt || tokens > ahead.tokens) return undefined;
  if (!hasSameLimits(ahead.limits, limits)) return undefined;
  ahead.left -= 1;
  lease.pace.requests += 1;
  ahead.load = withRequest(ahead.load, ahead.tokens);
  if (needsLease(limits)) reserve(lease, ahead.tokens);
  return { tokens: ahead.tokens, load: ahead.load, second: ahead.second };
}

export function reserve(lease: KeyLease, tokens: number): void {
  lease.places += 1;
  lease.tokens += tokens;
}

/** Gives back what nobody came for. */
export function dropAhead(lease: KeyLease): void {
  const { ahead } = lease;
  lease.ahead = undefined;
  if (ahead === undefined || ahead.left === 0) return;
  if (ahead.tokens > 0) lease.isDue = true;
  if (hasLimit(ahead.limits, requestLimits)) lease.corrections.push({ second: ahead.second, requests: -ahead.left });
}

/** Without anything ahead in a second. */
const fewRequests = 16;
const firstWanted = 2;
const maxWanted = 128;

/** Whether it sends so many requests a second that it has some ahead. */
const isBusy = ({ pace }: KeyLease): boolean => pace.requests > fewRequests || pace.wanted > 0;

/**
 * How many to ask for ahead: more each time, and none at first, so that of a key that sends few exactly what it sent counts.
 * One that was busy until the last second goes on with half.
 */
export function wantedAhead(lease: KeyLease, second: number): number {
  const { pace, limits, waiting, ahead } = lease;
  if (pace.second !== second) {
    const goesOn = pace.second === second - 1 && pace.requests > fewRequests;
    Object.assign(pace, { second, requests: 0, wanted: goesOn ? Math.floor(pace.wanted / 2) : 0 });
  }
  pace.requests += waiting.length;
  // A place that nobody uses would be shown as taken.
  if (waiting.length === 0 || !isBusy(lease) || hasLimit(limits, placeLimits)) return 0;
  pace.wanted = Math.min(maxWanted, Math.max(firstWanted, 2 * pace.wanted));
  // Some are left if they were too small.
  return Math.max(0, pace.wanted - (ahead?.left ?? 0));
}

export const hasSameLimits = (own: KeyLimits, limits: KeyLimits): boolean =>
  own === limits || limitNames.every((name) => own[name] === limits[name]);

const nothingLeased = { handOver: () => undefined, end: () => {}, cancel: () => {} };

/** For a request that no limit is compared with. */
export const unlimited: Admission = { ...nothingLeased, refusedBy: undefined, waitMs: 0, used: () => undefined };
export const unavailable: Admission = { ...unlimited, refusedBy: "unavailable" };

/** An admitted request, whose place and tokens are held. */
interface Admitted extends Pick<Asked, "limits" | "tokens"> {
  /** In which it counts as a request. */
  second: number;
  /** What counts, the request included; undefined while the database fails. */
  load: KeyLoad | undefined;
}

export function admitted(state: State, lease: KeyLease, { limits, tokens, second, load }: Admitted): Admission {
  let isEnded = !needsLease(limits);
  let isCounted = false;
  let isCancelled = false;

  function end(): void {
    if (isEnded) return;
    isEnded = true;
    lease.places -= 1;
    if (isCounted && (state.degraded || state.areCountsWaiting())) addUncounted(state, lease, tokens);
    else lease.tokens -= tokens;
    lease.isDue = true;
    state.changed.add(lease);
    // At once, to be seen, and as the client's next request may come to another process; of a busy key, several together.
    const isUrgent = !isBusy(lease) || (state.instances > 1 && hasLimit(limits, placeLimits));
    if (!state.degraded) state.wake(isUrgent);
  }

  return {
    refusedBy: undefined,
    waitMs: 0,
    used: (name, isCharged) => load && usedOf(load, name, isCharged),
    handOver() {
      if (!hasLimit(limits, tokenLimits)) return undefined;
      isCounted = true;
      return { keyId: lease.keyId, instance: state.instance };
    },
    end,
    cancel() {
      if (isCancelled) return;
      isCancelled = true;
      end();
      if (!hasLimit(limits, requestLimits)) return;
      lease.corrections.push({ second, requests: -1 });
      state.changed.add(lease);
      if (!state.degraded) state.wake(false);
    },
  };
}

/** Now by the database's clock, as far as it was heard. */
export const databaseNow = ({ monotonic, aheadMs }: State): number => monotonic() + aheadMs;

function addUncounted(state: State, lease: KeyLease, tokens: number): void {
  const { uncounted } = lease;
  const second = Math.floor(databaseNow(state) / 1000);
  const latest = uncounted.at(-1);
  if (latest?.second === second) latest.tokens += tokens;
  else uncounted.push({ second, tokens });
  state.uncounted.add(lease);
  // A long outage leaves one for each day, and those of the last minute.
  const [oldest, next] = uncounted;
  const isOld = next !== undefined && next.second <= second - minuteWindowSeconds;
  if (oldest !== undefined && isOld && dayOf(oldest) === dayOf(next)) {
    next.tokens += oldest.tokens;
    uncounted.shift();
  }
}

const dayOf = ({ second }: { second: number }): number => dayNumberOf(second * 1000);

interface Refusal {
  refusedBy: LimitName;
  waitMs: number;
  /** What counts without the request; undefined while the database fails. */
  load: KeyLoad | undefined;
}

/** Counts a refusal with the next batch, unless the request waits. */
export function refuse(state: State, lease: KeyLease, { mayWait }: Asked, { load, ...refusal }: Refusal): Admission {
  if (!mayWait || !isWorthWaiting(refusal)) {
    lease.refused += 1;
    state.changed.add(lease);
  }
  return { ...nothingLeased, ...refusal, used: (name, isCharged) => load && usedOf(load, name, isCharged) };
}
