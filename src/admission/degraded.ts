import { type Asked, hold, type KeyLease } from "./key-leases.ts";
import { judgeLocally } from "./local-limits.ts";
import {
  admissionOf,
  holdOf,
  type LimitsFallback,
  markHeld,
  refuse,
  type State,
  unavailable,
  unlimited,
} from "./state.ts";
import { heldWaitMs, waitOf } from "../store/limits/judge.ts";
import { holdsPlace } from "../store/limits/windows.ts";
import { hasLimit, requestLimits } from "../domain/limits.ts";
import { minuteWindowSeconds } from "../time/windows.ts";
import type { Admission } from "../domain/admissions.ts";

const degradedMessages: Readonly<Record<LimitsFallback, string>> = {
  local: "Database unavailable; each process enforces its share of the limits of keys",
  open: "Database unavailable; not enforcing the limits of keys",
  closed: "Database unavailable; refusing requests of keys with limits",
};

/** Of a batch that is under way. */
export const noResponse = "no response in time";

/** Slow is not failed: what is under way goes on, and only the requests wait no longer. */
export function enterDegraded(state: State): void {
  if (!state.degraded) state.log.warn(degradedMessages[state.fallback], { reason: state.failure });
  state.degraded = true;
  for (const { lease, waiting } of state.writing) {
    for (const one of waiting) {
      one.isDecided = true;
      one.settled.resolve(decideAlone(state, lease, one));
    }
  }
  for (const lease of state.changed) {
    for (const one of lease.waiting.splice(0)) one.settled.resolve(decideAlone(state, lease, one));
  }
  state.watch.hurry();
}

export function leaveDegraded(state: State): void {
  state.failure = noResponse;
  if (!state.degraded) return;
  state.degraded = false;
  state.log.info("Database available again; enforcing the limits of keys");
  for (const lease of state.leases.values()) lease.tokensMeanwhile = 0;
  markHeld(state);
}

/** Decides without the database. */
export function decideAlone(state: State, lease: KeyLease, asked: Asked): Admission {
  const { fallback, instances } = state;
  if (fallback === "open") return unlimited;
  if (fallback === "closed") return unavailable;
  const now = state.clock();
  const judged = judgeLocally(lease, asked, { now, instances });
  if (judged?.refusedBy !== undefined) {
    const waitMs = waitOf(judged, asked, { now, seconds: undefined }) ?? heldWaitMs;
    return refuse(state, lease, asked, { refusedBy: judged.refusedBy, waitMs });
  }
  state.changed.add(lease);
  const second = Math.floor(now / 1000);
  if (hasLimit(asked.limits, requestLimits)) addRequest(lease, second);
  if (holdsPlace(asked.limits)) hold(lease, asked.tokens);
  return admissionOf({}, holdOf(state, lease, { ...asked, second }));
}

/** Counts a request of which the database does not know. */
function addRequest(lease: KeyLease, second: number): void {
  const latest = lease.corrections.at(-1);
  if (latest?.second === second && latest.requests > 0) latest.requests += 1;
  else {
    // A long outage leaves only those that still count.
    lease.corrections = lease.corrections.filter((one) => one.second > second - minuteWindowSeconds);
    lease.corrections.push({ second, requests: 1 });
  }
}
