import {
  Admitted,
  type Asked,
  databaseNow,
  type Claim,
  type Group,
  type LimitsFallback,
  refuse,
  type State,
  unavailable,
  unlimited,
} from "./process-leases.ts";
import { type Bound, countedOf, decide, type KeyLoad, noLoad, sharesOf, waitOf } from "../store/limits/judge.ts";
import type { SubjectId } from "../domain/keys.ts";
import { hasLimit, limitKinds, limitNames, requestLimits } from "../domain/limits.ts";
import { minuteWindowSeconds, windowResetAt } from "../time/seoul.ts";
import { type Admission, othersEndMs } from "../domain/admissions.ts";

const degradedMessages: Readonly<Record<LimitsFallback, string>> = {
  local: "Database unavailable; each process enforces its share of the limits of keys",
  open: "Database unavailable; not enforcing the limits of keys",
  closed: "Database unavailable; refusing requests of keys with limits",
};

/** Slow is not failed: what is under way goes on, and only the requests wait no longer. */
export function enterDegraded(state: State): void {
  if (!state.degraded) state.log.warn(degradedMessages[state.fallback], { reason: state.failure });
  state.degraded = true;
  state.waitingSince = undefined;
  for (const { group, waiting } of state.writing) {
    for (const one of waiting) {
      one.isDecided = true;
      one.settled.resolve(decideAlone(state, group, one));
    }
  }
  for (const group of state.changed) {
    for (const one of group.waiting.splice(0)) one.settled.resolve(decideAlone(state, group, one));
  }
  state.watch.hurry();
}

export function leaveDegraded(state: State): void {
  state.degraded = false;
  state.log.info("Database available again; enforcing the limits of keys");
  releaseCounted(state);
  writeAllAgain(state);
}

/** Gives back the tokens of requests whose counts waited. */
export function releaseCounted(state: State): void {
  if (state.degraded || state.areCountsWaiting()) return;
  for (const group of state.uncounted) {
    for (const { lease } of group.claims) {
      for (const { tokens } of lease.uncounted.splice(0)) lease.tokens -= tokens;
      lease.isDue = true;
    }
    state.changed.add(group);
  }
  state.uncounted.clear();
}

/** Has the database told again of all that requests have. */
export function writeAllAgain(state: State): void {
  for (const group of state.groups.values()) {
    for (const { lease } of group.claims) {
      if (lease.places === 0 && lease.tokens === 0 && group.ahead === undefined) continue;
      lease.isDue = true;
      state.changed.add(group);
    }
  }
}

/** Decides without the database. */
export function decideAlone(state: State, group: Group, asked: Asked): Admission {
  const { fallback } = state;
  if (fallback === "open") return unlimited;
  if (fallback === "closed") return unavailable;
  const now = databaseNow(state);
  const { claims } = asked;
  const { instances, deadAfterMs } = state;
  const shares = claims.map((claim) => shareOf(claim, { now, instances, deadAfterMs }));
  const { refusedBy, at, bounds, tokens } = decide(shares, asked);
  if (refusedBy !== undefined) {
    // It is told of the whole limits.
    const whole = claims.map(({ limits }, index) => ({ limits, load: bounds[index]?.load ?? noLoad }));
    const waitMs = waitOf({ refusedBy, at, bounds: whole, tokens }, { now }) ?? othersEndMs;
    return refuse(state, group, asked, { refusedBy, at, waitMs, bounds: [] });
  }
  state.changed.add(group);
  const second = Math.floor(now / 1000);
  for (const { lease, limits } of claims) if (hasLimit(limits, requestLimits)) addRequest(lease, second);
  return new Admitted(state, group, { claims, tokens, second, bounds: [] });
}

export const admittedAlone = ({ leases }: State): { id: SubjectId; requests: number }[] =>
  [...leases.values()]
    .map(({ id, corrections }) => ({ id, requests: sumOf(corrections, ({ requests }) => requests) }))
    .filter(({ requests }) => requests > 0);

/** Counts a request of which the database does not know. */
function addRequest(lease: Claim["lease"], second: number): void {
  const latest = lease.corrections.at(-1);
  if (latest?.second === second && latest.requests > 0) latest.requests += 1;
  else {
    // A long outage leaves only those that still count.
    lease.corrections = lease.corrections.filter((one) => one.second > second - minuteWindowSeconds);
    lease.corrections.push({ second, requests: 1 });
  }
}

/**
 * What a process enforces while the database does not answer: its share of each limit, and not what others hold. The shares
 * are rounded up, so all processes together admit at most one request more for each of them, beside what others had running
 * for longer than a lease, or used since this process last asked.
 * @param now by the database's clock
 */
export function shareOf(
  { lease, limits }: Claim,
  { now, instances, deadAfterMs }: Pick<State, "instances" | "deadAfterMs"> & { now: number },
): Bound {
  const { known, corrections, sent, uncounted } = lease;
  const waiting = sumOf(uncounted, ({ tokens }) => tokens);
  // What another process held counts no longer than its lease would.
  const isHeld = now < known.at + deadAfterMs;
  const others: KeyLoad = { ...known.others, ...(isHeld ? {} : { inFlight: 0, reserved: 0 }) };
  const load = {
    ...others,
    inFlight: others.inFlight + lease.places,
    reserved: others.reserved + lease.tokens - waiting,
  };
  for (const name of limitNames) {
    const [counted, { window }] = [countedOf[name], limitKinds[name]];
    if (counted === undefined || limits[name] === null) continue;
    const counts = (at: number): boolean => windowResetAt(window, at) > now;
    if (!counts(known.at)) others[counted] = 0;
    const own =
      limitKinds[name].counts === "tokens"
        ? sumOf(uncounted, (one) => (counts(one.second * 1000) ? one.tokens : 0))
        : sumOf([...corrections, ...sent], (one) => (counts(one.second * 1000) ? one.requests : 0));
    load[counted] = others[counted] + own;
  }
  return { limits: sharesOf(limits, others, instances), load };
}

const sumOf = <One>(list: readonly One[], of: (one: One) => number): number =>
  list.reduce((sum, one) => sum + of(one), 0);
