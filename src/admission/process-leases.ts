// What this process has of each subject, a key or a team: its lease, and what requests get of that. Requests that the same
// subjects limit are a group: they wait together, and may be taken ahead together.

import { randomBytes } from "node:crypto";
import type { InstanceWatch } from "./instance-watch.ts";
import { type Bound, type Judged, noLoad, type Size, usedOf, withRequest } from "../store/limits/judge.ts";
import type { LeaseRequest, LimitStore } from "../store/limits/contract.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import { dayNumberOf, minuteWindowSeconds } from "../time/seoul.ts";
import { noResponse } from "../time/wait.ts";
import type { KeyLimits, LimitName, SubjectId } from "../domain/keys.ts";
import { anyHasLimit, hasLimit, limitNames, placeLimits, requestLimits, tokenLimits } from "../domain/limits.ts";
import { type Admission, isWorthWaiting, type SettledAdmission } from "../domain/admissions.ts";

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

export interface State extends ReturnType<typeof newState> {
  watch: InstanceWatch;
  /** Has what changed in leases written: at once, or a little later. */
  startUpkeep: (state: State, isUrgent?: boolean) => void;
}

const defaults = { waitLimitMs: 1500, beatMs: 3000, deadAfterMs: 15_000, processes: 1 };

export const newState = (options: AdmissionsOptions) => ({
  fallback: "local" as LimitsFallback,
  areCountsWaiting: () => false,
  ...defaults,
  ...options,
  instance: randomBytes(9).toString("base64url"),
  /** Of the latest batch. */
  version: 0,
  leases: new Map<SubjectId, SubjectLease>(),
  /** By the ids of their subjects. */
  groups: new Map<SubjectId | string, Group>(),
  /** Those that may have something to write, or something ahead. */
  changed: new Set<Group>(),
  /** The batch that is under way. */
  writing: [] as readonly LeaseWork[],
  /** Those with tokens of requests that have ended, and whose counts wait. */
  uncounted: new Set<Group>(),
  loop: undefined as Promise<void> | undefined,
  /** What ended is to be written, and not only what waits. */
  isUpkeepDue: false,
  upkeepTimer: undefined as Timer | undefined,
  /** When it was last written, by the monotonic clock. */
  upkeptAt: 0,
  /** Runs while requests wait. */
  waitTimer: undefined as Timer | undefined,
  /** When the first of those came that the next batch takes, by the monotonic clock; undefined if there are none. */
  waitingSince: undefined as number | undefined,
  degraded: false,
  /** Why the latest batch failed, or has no reply yet. */
  failure: noResponse,
  /** Processes that live, this one included, when they were last counted; Infinity: they never were. */
  instances: Infinity,
  /** By how much the database's clock is ahead of the monotonic one: that of this machine may be anything. */
  aheadMs: options.clock() - options.monotonic(),
  closed: false,
  /** Whether the database lists this process, or has failed to. */
  isListed: false,
});

/** A request's subject: what this process has of it, and the limits that the request came with. */
export interface Claim {
  lease: SubjectLease;
  limits: KeyLimits;
}

/** What is asked for one request. */
export interface Asked extends Size {
  claims: readonly Claim[];
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
  claims: readonly Claim[];
  /** Reserved for each. */
  tokens: number;
  left: number;
  /** What counts before the next one. */
  bounds: readonly Bound[];
  /** Since the epoch, by the database's clock. */
  second: number;
  /** When that second ends at the latest, by the monotonic clock. */
  endsAt: number;
}

type SubjectLease = ReturnType<typeof newLease>;

/** The requests that the same subjects limit. */
export interface Group {
  /** With the limits that the latest request came with. */
  claims: readonly Claim[];
  ahead: Ahead | undefined;
  waiting: WaitingRequest[];
  /** Requests in a second, and how many the latest that found none ahead asked for. */
  pace: { second: number; requests: number; wanted: number };
}

/** What this process has of one subject. */
export const newLease = (id: SubjectId) => ({
  id,
  /** Held by requests in flight: the database has at least as much. */
  places: 0,
  tokens: 0,
  /** Of requests that may come ahead. */
  aheadTokens: 0,
  /** What the database has to add to the requests of a second. */
  corrections: [] as Correction[],
  /** Those of the batch that is under way. */
  sent: [] as readonly Correction[],
  /** Refusals that it has not counted. */
  refused: 0,
  /** It has more than is held. */
  isDue: false,
  /** Its latest answer: what counted at a time, but for what was held here. */
  known: { others: noLoad, at: 0 },
  /** Of requests that ended in a second while their counts waited, or the database was away: still among `tokens`. */
  uncounted: [] as { second: number; tokens: number }[],
});

interface Correction {
  second: number;
  requests: number;
}

/** The group of requests with these claims, which are its latest. */
export function groupOf({ groups }: Pick<State, "groups">, claims: readonly Claim[]): Group {
  const id = claims.length === 1 ? (claims[0]?.lease.id ?? 0) : claims.map(({ lease }) => lease.id).join(" ");
  const pace = { second: 0, requests: 0, wanted: 0 };
  const group = groups.getOrInsertComputed(id, () => ({ claims, waiting: [], ahead: undefined, pace }));
  group.claims = claims;
  return group;
}

/** What is written of one group in a batch. */
export interface LeaseWork {
  group: Group;
  claims: readonly Claim[];
  waiting: readonly WaitingRequest[];
  request: LeaseRequest;
}

/** Whether the database does not know all that there is to know. */
export function needsWrite({ waiting, claims }: Group): boolean {
  if (waiting.length > 0) return true;
  for (const { lease } of claims) if (lease.isDue || lease.corrections.length > 0 || lease.refused > 0) return true;
  return false;
}

/** Admits a request without the database. @returns undefined if none is left */
export function takeAhead(state: State, group: Group, { claims, tokens }: Asked): Admission | undefined {
  const { ahead } = group;
  if (ahead === undefined || ahead.left === 0 || state.monotonic() >= ahead.endsAt || tokens > ahead.tokens)
    return undefined;
  if (!hasSameLimits(ahead.claims, claims)) return undefined;
  ahead.left -= 1;
  group.pace.requests += 1;
  ahead.bounds = withRequest(ahead.bounds, ahead.tokens);
  for (const { lease } of claims) lease.aheadTokens -= ahead.tokens;
  const { second, bounds } = ahead;
  return new Admitted(state, group, { claims, tokens: ahead.tokens, second, bounds });
}

/** Gives back what nobody came for. */
export function dropAhead(group: Group): void {
  const { ahead } = group;
  group.ahead = undefined;
  if (ahead === undefined || ahead.left === 0) return;
  for (const { lease, limits } of ahead.claims) {
    lease.aheadTokens -= ahead.left * ahead.tokens;
    if (ahead.tokens > 0) lease.isDue = true;
    if (hasLimit(limits, requestLimits)) lease.corrections.push({ second: ahead.second, requests: -ahead.left });
  }
}

/** Without anything ahead in a second. */
const fewRequests = 16;
const firstWanted = 2;
const maxWanted = 128;

/** Whether it sends so many requests a second that it has some ahead. */
const isBusy = ({ pace }: Group): boolean => pace.requests > fewRequests || pace.wanted > 0;

/**
 * How many to ask for ahead: more each time, and none at first, so that of a key that sends few exactly what it sent counts.
 * One that was busy until the last second goes on with half.
 */
export function wantedAhead(group: Group, second: number): number {
  const { pace, claims, waiting, ahead } = group;
  if (pace.second !== second) {
    const goesOn = pace.second === second - 1 && pace.requests > fewRequests;
    Object.assign(pace, { second, requests: 0, wanted: goesOn ? Math.floor(pace.wanted / 2) : 0 });
  }
  pace.requests += waiting.length;
  // A place that nobody uses would be shown as taken.
  if (waiting.length === 0 || !isBusy(group) || anyHasLimit(claims, placeLimits)) return 0;
  pace.wanted = Math.min(maxWanted, Math.max(firstWanted, 2 * pace.wanted));
  // Some are left if they were too small.
  return Math.max(0, pace.wanted - (ahead?.left ?? 0));
}

/** Whether requests of one group came with the same limits. */
export function hasSameLimits(own: readonly Claim[], claims: readonly Claim[]): boolean {
  for (const [at, { limits }] of own.entries()) {
    const other = claims[at]?.limits;
    if (other !== limits && limitNames.some((name) => limits[name] !== other?.[name])) return false;
  }
  return true;
}
const nothingLeased = { at: 0, handOver: () => undefined, end: () => {}, cancel: () => {} };

/** For a request that no limit is compared with. */
export const unlimited: Admission = { ...nothingLeased, refusedBy: undefined, waitMs: 0, used: () => undefined };
export const unavailable: Admission = { ...unlimited, refusedBy: "unavailable" };

/** What is counted against a limit. */
const usedIn =
  (bounds: readonly Bound[]): Admission["used"] =>
  (name, at = 0, isCharged = false) => {
    const load = bounds[at]?.load;
    return load && usedOf(load, name, isCharged);
  };

/** A request that only limits of requests per minute hold gives nothing back. */
const heldLimits = [...placeLimits, ...tokenLimits];

type AdmittedRequest = Pick<Ahead, "claims" | "tokens" | "second" | "bounds">;

/** Holds the place and the tokens of an admitted request until it ends. */
export class Admitted implements Admission {
  readonly refusedBy = undefined;
  readonly at = 0;
  readonly waitMs = 0;
  readonly used: Admission["used"];
  readonly #state: State;
  readonly #group: Group;
  readonly #request: AdmittedRequest;
  #isEnded: boolean;
  #isCounted = false;
  #isCancelled = false;

  constructor(state: State, group: Group, request: AdmittedRequest) {
    const { claims, tokens, bounds } = request;
    this.used = usedIn(bounds);
    this.#state = state;
    this.#group = group;
    this.#request = request;
    this.#isEnded = !anyHasLimit(claims, heldLimits);
    if (this.#isEnded) return;
    for (const { lease } of claims) {
      lease.places += 1;
      lease.tokens += tokens;
    }
  }

  handOver(): SettledAdmission | undefined {
    const subjects: SubjectId[] = [];
    for (const { lease, limits } of this.#request.claims) if (hasLimit(limits, tokenLimits)) subjects.push(lease.id);
    this.#isCounted = subjects.length > 0;
    return this.#isCounted ? { subjects, instance: this.#state.instance } : undefined;
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    const [state, group, { claims, tokens }] = [this.#state, this.#group, this.#request];
    const waits = this.#isCounted && (state.degraded || state.areCountsWaiting());
    if (waits) state.uncounted.add(group);
    for (const { lease } of claims) {
      lease.places -= 1;
      if (waits) addUncounted(state, lease, tokens);
      else lease.tokens -= tokens;
      lease.isDue = true;
    }
    state.changed.add(group);
    // At once, to be seen, and as the client's next request may come to another process; of a busy key, several together.
    const isUrgent = !isBusy(group) || (state.instances > 1 && anyHasLimit(claims, placeLimits));
    if (!state.degraded) state.startUpkeep(state, isUrgent);
  }

  cancel(): void {
    if (this.#isCancelled) return;
    this.#isCancelled = true;
    this.end();
    const [state, { claims, second }] = [this.#state, this.#request];
    const counting = claims.filter(({ limits }) => hasLimit(limits, requestLimits));
    if (counting.length === 0) return;
    for (const { lease } of counting) lease.corrections.push({ second, requests: -1 });
    state.changed.add(this.#group);
    if (!state.degraded) state.startUpkeep(state);
  }
}

/** Now by the database's clock, as far as it was heard. */
export const databaseNow = ({ monotonic, aheadMs }: State): number => monotonic() + aheadMs;

function addUncounted(state: State, { uncounted }: SubjectLease, tokens: number): void {
  const second = Math.floor(databaseNow(state) / 1000);
  const latest = uncounted.at(-1);
  if (latest?.second === second) latest.tokens += tokens;
  else uncounted.push({ second, tokens });
  // A long outage leaves one for each day, and those of the last minute.
  const [oldest, next] = uncounted;
  const isOld = next !== undefined && next.second <= second - minuteWindowSeconds;
  if (oldest !== undefined && isOld && dayOf(oldest) === dayOf(next)) {
    next.tokens += oldest.tokens;
    uncounted.shift();
  }
}

const dayOf = ({ second }: { second: number }): number => dayNumberOf(second * 1000);

/** Counts a refusal with the next batch, unless the request waits. */
export function refuse(
  state: State,
  group: Group,
  { mayWait, claims }: Asked,
  { bounds, ...refusal }: Pick<Judged, "at" | "bounds"> & { refusedBy: LimitName; waitMs: number },
): Admission {
  const lease = claims[refusal.at]?.lease;
  if (lease !== undefined && (!mayWait || !isWorthWaiting(refusal))) {
    lease.refused += 1;
    state.changed.add(group);
  }
  return { ...nothingLeased, ...refusal, used: usedIn(bounds) };
}
