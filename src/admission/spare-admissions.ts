import type { Reserve } from "./reserves.ts";
import { addRequests, type KeyLoad } from "../store/limits/windows.ts";
import type { KeyId, KeyLimits } from "../domain/keys.ts";
import { hasLimit, limitNames, placeLimits } from "../domain/limits.ts";

/** Admissions that one transaction gave ahead, for requests of a key that are alike. */
export interface SpareAdmissions {
  keyId: KeyId;
  limits: KeyLimits;
  /** Reserved for each of them. */
  tokens: number;
  /** Undefined if the key has no limit that reserves something. */
  reserve: Reserve | undefined;
  /** What counted before the next one. */
  load: KeyLoad;
  /** In which they count as requests, since the epoch. */
  second: number;
  /** How many no request has come for. */
  left: number;
}

/** One of them. */
export interface TakenAdmission extends Pick<SpareAdmissions, "tokens" | "reserve"> {
  /** What counts with it. */
  load: KeyLoad;
}

/**
 * Admissions ahead of their requests, so that a key that sends many a second needs a transaction for a few dozen of them, and
 * most do not wait for one. They are for the second in which they count as requests: a window of a minute stays exact.
 * Seconds are since the epoch.
 */
export interface SpareStock {
  /**
   * How many to ask for with so many requests of a key that found none: more each time within a second, and none at first,
   * so that of a key that sends few exactly what it sent counts.
   */
  wanted(keyId: KeyId, limits: KeyLimits, requests: number, second: number): number;
  add(spares: SpareAdmissions): void;
  /** None is left for a key, so that the next request asks for few again. */
  refuse(keyId: KeyId): void;
  take(keyId: KeyId, limits: KeyLimits, tokens: number, second: number): TakenAdmission | undefined;
  /** Removes those of other seconds than the current one; undefined: all. */
  removeOld(second: number | undefined): SpareAdmissions[];
  /** Whether there is any. */
  isEmpty(): boolean;
}

/** Without a spare one in a second. */
const fewRequests = 16;
const firstWanted = 2;
const maxWanted = 64;

export function createSpareStock(): SpareStock {
  /** Of one second. */
  const byKey = new Map<KeyId, { requests: number; wanted: number; spares: SpareAdmissions[] }>();
  let current: number | undefined;
  let old: SpareAdmissions[] = [];

  function turnTo(second: number | undefined): void {
    if (second === current) return;
    for (const { spares } of byKey.values()) old.push(...spares);
    byKey.clear();
    current = second;
  }

  return {
    wanted(keyId, limits, requests, second) {
      turnTo(second);
      // A place that nobody uses would be shown as taken.
      if (hasLimit(limits, placeLimits)) return 0;
      const own = byKey.get(keyId) ?? { requests: 0, wanted: 0, spares: [] };
      byKey.set(keyId, own);
      own.requests += requests;
      if (own.requests <= fewRequests) return 0;
      own.wanted = Math.min(maxWanted, Math.max(firstWanted, 2 * own.wanted));
      // Some are there still if they were too small.
      return Math.max(0, own.wanted - own.spares.reduce((sum, { left }) => sum + left, 0));
    },
    add(spares) {
      const own = spares.second === current ? byKey.get(spares.keyId) : undefined;
      (own?.spares ?? old).push(spares);
    },
    refuse(keyId) {
      const own = byKey.get(keyId);
      if (own !== undefined) own.wanted = 0;
    },
    take(keyId, limits, tokens, second) {
      turnTo(second);
      const own = byKey.get(keyId)?.spares ?? [];
      const index = own.findIndex((one) => one.tokens >= tokens && hasSameLimits(one.limits, limits));
      const found = own[index];
      if (found === undefined) return undefined;
      found.left -= 1;
      if (found.left === 0) own.splice(index, 1);
      // A copy: the one before is still of its own request.
      const load = addRequests({ ...found.load }, found.tokens, 1);
      found.load = load;
      return { tokens: found.tokens, reserve: found.reserve, load };
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

const hasSameLimits = (own: KeyLimits, limits: KeyLimits): boolean =>
  own === limits || limitNames.every((name) => own[name] === limits[name]);
