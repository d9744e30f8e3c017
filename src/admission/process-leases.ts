import type { Lease, LeaseRequest } from "../store/limits/contract.ts";
import { holdsPlace, type KeyLoad, noLoad, withRequest } from "../store/limits/windows.ts";
import type { KeyId, KeyLimits } from "../domain/keys.ts";
import { hasLimit, limitNames, placeLimits, requestLimits } from "../domain/limits.ts";
import type { Admission } from "../domain/admissions.ts";

/** What is asked for one request. */
export interface Asked {
  limits: KeyLimits;
  tokens: number;
  /** It takes less than `tokens`, but no less than this, where that is all that is left. */
  leastTokens?: number | undefined;
  /** It asks again if it is worth waiting: then a refusal does not count. */
  mayWait: boolean;
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
  /** Of requests that ended while the database was away. */
  tokensMeanwhile: number;
  /** Of requests that have ended, and whose counts wait: still among `tokens`. */
  uncounted: number;
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
  tokensMeanwhile: 0,
  uncounted: 0,
  pace: { second: 0, requests: 0, wanted: 0 },
});

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
  if (holdsPlace(limits)) hold(lease, ahead.tokens);
  return { tokens: ahead.tokens, load: ahead.load, second: ahead.second };
}

export function hold(lease: KeyLease, tokens: number): void {
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
export const isBusy = ({ pace }: KeyLease): boolean => pace.requests > fewRequests || pace.wanted > 0;

/**
 * How many to ask for ahead: more each time, and none at first, so that of a key that sends few exactly what it sent counts.
 * One that was busy until the last second goes on with half.
 */
function wantedAhead(lease: KeyLease, second: number): number {
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

/** What is written of one key in a batch. */
export interface LeaseWork {
  lease: KeyLease;
  waiting: readonly WaitingRequest[];
  request: LeaseRequest;
}

/** Takes out what the next batch writes. @param second of our clock. @param most how many may be asked for ahead */
export function takeWork(lease: KeyLease, { second, most }: { second: number; most: number }): LeaseWork {
  const { keyId, limits, places, waiting, corrections, refused, ahead } = lease;
  const request: LeaseRequest = {
    keyId,
    limits,
    places,
    tokens: lease.tokens + (ahead === undefined ? 0 : ahead.left * ahead.tokens),
    requests: waiting.map(({ tokens }) => tokens),
    ahead: Math.min(most, wantedAhead(lease, second)),
    corrections,
    refused,
  };
  Object.assign(lease, { waiting: [], corrections: [], sent: corrections, refused: 0, isDue: false });
  return { lease, waiting, request };
}

/** Puts back what could not be written. */
export function putBack({ lease, waiting, request }: LeaseWork): void {
  lease.waiting.unshift(...waiting.filter(({ isDecided }) => !isDecided));
  lease.corrections.push(...request.corrections);
  lease.sent = [];
  lease.refused += request.refused;
  lease.isDue = true;
}

/** @param load what counts without those ahead. @param sentAt when it was asked for, by the monotonic clock */
export function keepAhead(
  { lease, request }: LeaseWork,
  { ahead, now }: Lease,
  { load, sentAt }: { load: KeyLoad; sentAt: number },
): void {
  if (ahead === 0) {
    if (request.ahead > 0) lease.pace.wanted = 0;
    return;
  }
  dropAhead(lease);
  const tokens = Math.max(0, ...request.requests);
  // The network only shortens it, and the clocks of the two machines may be anything.
  const endsAt = sentAt + 1000 - (now % 1000);
  lease.ahead = { limits: request.limits, tokens, left: ahead, load, second: Math.floor(now / 1000), endsAt };
}

const hasSameLimits = (own: KeyLimits, limits: KeyLimits): boolean =>
  own === limits || limitNames.every((name) => own[name] === limits[name]);
