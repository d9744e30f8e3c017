import type { KeyId, KeyLimits } from "../domain.ts";
import type { AdmissionRequest, AdmissionResult } from "../store/limit-store.ts";

/** An admission that was given ahead of the request that it is for. */
export interface SpareAdmission {
  request: AdmissionRequest;
  result: AdmissionResult;
}

/**
 * Admissions ahead of their requests, so that a key that sends many a second needs a transaction for a few dozen of them, and
 * most do not wait for one. They are for the second in which they count as requests: a window of a minute stays exact.
 * Seconds are since the epoch.
 */
export interface SpareAdmissions {
  /** How many to ask for with requests of a key that found none: more each time within a second, and none at first. */
  wanted(keyId: KeyId, limits: KeyLimits, second: number): number;
  add(spare: SpareAdmission): void;
  /** None is left for a key, so that the next request asks for few again. */
  refuse(keyId: KeyId): void;
  take(keyId: KeyId, limits: KeyLimits, tokens: number, second: number): SpareAdmission | undefined;
  /** Removes those of other seconds than the current one; undefined: all. */
  removeOld(second: number | undefined): SpareAdmission[];
  /** Whether there is any. */
  isEmpty(): boolean;
}

const firstWanted = 2;
const maxWanted = 64;

export function createSpareAdmissions(): SpareAdmissions {
  /** Of one second. */
  const byKey = new Map<KeyId, { wanted: number; spares: SpareAdmission[] }>();
  let current: number | undefined;
  let old: SpareAdmission[] = [];

  function turnTo(second: number | undefined): void {
    if (second === current) return;
    for (const { spares } of byKey.values()) old.push(...spares);
    byKey.clear();
    current = second;
  }

  return {
    wanted(keyId, limits, second) {
      turnTo(second);
      // A place that nobody uses would be shown as taken.
      if (limits.max_concurrency !== null) return 0;
      const own = byKey.get(keyId);
      if (own === undefined) {
        byKey.set(keyId, { wanted: 0, spares: [] });
        return 0;
      }
      own.wanted = Math.min(maxWanted, Math.max(firstWanted, 2 * own.wanted));
      // Some are there still if they were too small.
      return Math.max(0, own.wanted - own.spares.length);
    },
    add(spare) {
      const own = spare.result.second === current ? byKey.get(spare.request.keyId) : undefined;
      (own?.spares ?? old).push(spare);
    },
    refuse(keyId) {
      const own = byKey.get(keyId);
      if (own !== undefined) own.wanted = 0;
    },
    take(keyId, limits, tokens, second) {
      turnTo(second);
      const spares = byKey.get(keyId)?.spares ?? [];
      const index = spares.findIndex(({ request }) => request.tokens >= tokens && hasSameLimits(request, limits));
      if (index === -1) return undefined;
      return spares.splice(index, 1)[0];
    },
    removeOld(second) {
      turnTo(second);
      const removed = old;
      old = [];
      return removed;
    },
    isEmpty: () => old.length === 0 && byKey.values().every(({ spares }) => spares.length === 0),
  };
}

const hasSameLimits = ({ limits: own }: AdmissionRequest, limits: KeyLimits): boolean =>
  own === limits ||
  (own.requests_per_minute === limits.requests_per_minute &&
    own.tokens_per_minute === limits.tokens_per_minute &&
    own.tokens_per_day === limits.tokens_per_day &&
    own.tokens_per_month === limits.tokens_per_month &&
    own.max_concurrency === limits.max_concurrency);
