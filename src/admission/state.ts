import type { InstanceWatch } from "./instance-watch.ts";
import { type Asked, isBusy, type KeyLease, type LeaseWork } from "./process-leases.ts";
import { holdsPlace, type KeyLoad, usedOf } from "../store/limits/windows.ts";
import type { LimitStore } from "../store/limits/contract.ts";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import type { KeyId, LimitName } from "../domain/keys.ts";
import { hasLimit, placeLimits, requestLimits, tokenLimits } from "../domain/limits.ts";
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
}

export interface State extends Required<Omit<AdmissionsOptions, "beatMs" | "deadAfterMs">> {
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
  degraded: boolean;
  /** Why the latest batch failed. */
  failure: string;
  /** Processes that live, this one included. */
  instances: number;
  closed: boolean;
  /** Whether the database lists this process, or has failed to. */
  isListed: boolean;
  watch: InstanceWatch;
  /** Has what changed in leases written: at once, or a little later. */
  wake: (isUrgent: boolean) => void;
}

/** So often what ended on a busy key is given back, and what nobody came for. */
export const upkeepMs = 50;

const holdsNothing = { handOver: () => undefined, end: () => {}, cancel: () => {} };

/** For a request that no limit is compared with. */
export const unlimited: Admission = { ...holdsNothing, refusedBy: undefined, waitMs: 0, used: () => undefined };
export const unavailable: Admission = { ...unlimited, refusedBy: "unavailable" };

/** An admitted request, whose place and tokens are held. */
interface Admitted extends Pick<Asked, "limits" | "tokens"> {
  /** In which it counts as a request. */
  second: number;
  /** What counts, the request included; undefined while the database fails. */
  load: KeyLoad | undefined;
}

export function admitted(state: State, lease: KeyLease, { limits, tokens, second, load }: Admitted): Admission {
  let isEnded = !holdsPlace(limits);
  let isCounted = false;

  function end(): void {
    if (isEnded) return;
    isEnded = true;
    lease.places -= 1;
    if (isCounted && state.areCountsWaiting()) {
      lease.uncounted += tokens;
      state.uncounted.add(lease);
    } else {
      releaseTokens(state, lease, tokens);
    }
    lease.isDue = true;
    state.changed.add(lease);
    // At once, to be seen, and as the client's next request may come to another process; of a busy key, several together.
    const isUrgent = !isBusy(lease) || (state.instances > 1 && hasLimit(limits, placeLimits));
    if (!state.degraded) state.wake(isUrgent);
  }

  return {
    refusedBy: undefined,
    waitMs: 0,
    used: (name) => load && usedOf(load, name),
    handOver() {
      if (!hasLimit(limits, tokenLimits)) return undefined;
      isCounted = true;
      return { keyId: lease.keyId, instance: state.instance };
    },
    end,
    cancel() {
      end();
      if (!hasLimit(limits, requestLimits)) return;
      lease.corrections.push({ second, requests: -1 });
      state.changed.add(lease);
      if (!state.degraded) state.wake(false);
    },
  };
}

export function releaseTokens(state: State, lease: KeyLease, tokens: number): void {
  lease.tokens -= tokens;
  lease.isDue = true;
  state.changed.add(lease);
  if (state.degraded) lease.tokensMeanwhile += tokens;
}

/** Has all that is held written again. */
export function markHeld(state: State): void {
  for (const lease of state.leases.values()) {
    if (lease.places === 0 && lease.tokens === 0 && lease.ahead === undefined) continue;
    lease.isDue = true;
    state.changed.add(lease);
  }
}

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
  return { ...holdsNothing, ...refusal, used: (name) => load && usedOf(load, name) };
}
