import {
  admitted,
  type Asked,
  type KeyLease,
  type LimitsFallback,
  refuse,
  reserve,
  type State,
  unavailable,
  unlimited,
  writeAllAgain,
} from "./process-leases.ts";
import {
  countedOf,
  findExceeded,
  isOfTokens,
  leastTokensLeft,
  othersEndMs,
  needsLease,
  type Judged,
  type KeyLoad,
  usedOf,
  waitOf,
} from "../store/limits/windows.ts";
import { hasLimit, limitKinds, limitNames, perLimit, requestLimits } from "../domain/limits.ts";
import { minuteWindowSeconds, windowResetAt } from "../time/windows.ts";
import type { Admission } from "../domain/admissions.ts";

const degradedMessages: Readonly<Record<LimitsFallback, string>> = {
  local: "Database unavailable; each process enforces its share of the limits of keys",
  open: "Database unavailable; not enforcing the limits of keys",
  closed: "Database unavailable; refusing requests of keys with limits",
};

/** Of a batch that is under way. */
export const noResponse = "no response in time";

/** A reply that arrived while our own event loop stalled is taken in after timers and before immediates (Bun 1.4.5). */
export function startWait(state: State): void {
  if (state.waitTimer !== undefined) return;
  const { waitLimitMs, monotonic, waitingSince = monotonic() } = state;
  const timer = setTimeout(
    () => {
      setImmediate(() => {
        if (state.waitTimer !== timer) return;
        endWait(state);
        enterDegraded(state);
      });
    },
    waitLimitMs + waitingSince - monotonic(),
  );
  state.waitTimer = timer;
}

export function endWait(state: State): void {
  clearTimeout(state.waitTimer);
  state.waitTimer = undefined;
}

/** Slow is not failed: what is under way goes on, and only the requests wait no longer. */
export function enterDegraded(state: State): void {
  if (!state.degraded) state.log.warn(degradedMessages[state.fallback], { reason: state.failure });
  state.degraded = true;
  state.waitingSince = undefined;
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
  state.degraded = false;
  state.log.info("Database available again; enforcing the limits of keys");
  for (const lease of state.leases.values()) lease.tokensMeanwhile = 0;
  writeAllAgain(state);
}

/** Decides without the database. */
export function decideAlone(state: State, lease: KeyLease, asked: Asked): Admission {
  const { fallback, instances } = state;
  if (fallback === "open") return unlimited;
  if (fallback === "closed") return unavailable;
  const now = state.clock();
  const judged = judgeLocally(lease, asked, { now, instances });
  if (judged.refusedBy !== undefined) {
    const waitMs = waitOf(judged, asked, { now, seconds: undefined }) ?? othersEndMs;
    return refuse(state, lease, asked, { refusedBy: judged.refusedBy, waitMs, load: undefined });
  }
  state.changed.add(lease);
  const second = Math.floor(now / 1000);
  if (hasLimit(asked.limits, requestLimits)) addRequest(lease, second);
  const [{ limits }, { tokens }] = [asked, judged];
  if (needsLease(limits)) reserve(lease, tokens);
  return admitted(state, lease, { limits, tokens, second, load: undefined });
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

interface LocallyJudged extends Judged {
  /** What it reserves. */
  tokens: number;
}

/**
 * What a process enforces while the database does not answer: of what a limit had left when it last did, its share. All
 * processes together admit at most one request more than that for each of them.
 * @param instances how many processes lived then
 */
export function judgeLocally(
  lease: KeyLease,
  { limits, tokens, leastTokens = Infinity }: Pick<Asked, "limits" | "tokens" | "leastTokens">,
  { now, instances }: { now: number; instances: number },
): LocallyJudged {
  const others = knownLoad(lease, now);
  const shares = perLimit((name) => {
    const limit = limits[name];
    if (limit === null) return null;
    const used = usedOf(others, name);
    return used < limit ? used + Math.ceil((limit - used) / instances) : limit;
  });
  const own: KeyLoad = {
    ...others,
    inFlight: others.inFlight + lease.places,
    reserved: others.reserved + lease.tokens + lease.tokensMeanwhile,
    minuteRequests: others.minuteRequests + requestsMeanwhile(lease, now),
  };
  const refusedBy = findExceeded(own, shares, tokens);
  // As where the database answers, what is left is as good a guess of what may be generated.
  const left = leastTokensLeft(own, shares);
  const takesLess = refusedBy !== undefined && isOfTokens(refusedBy) && left >= leastTokens;
  return takesLess
    ? { refusedBy: findExceeded(own, shares, left), load: own, tokens: left }
    : { refusedBy, load: own, tokens };
}

/** What counted when the database last answered, and still does. */
function knownLoad({ known }: KeyLease, now: number): KeyLoad {
  const load = { ...known.others };
  for (const name of limitNames) {
    const counted = countedOf[name];
    if (counted !== undefined && windowResetAt(limitKinds[name].window, known.at) <= now) load[counted] = 0;
  }
  return load;
}

/** What the database has to add to the requests of the last minute. */
const requestsMeanwhile = ({ corrections, sent }: KeyLease, now: number): number =>
  [...corrections, ...sent].reduce(
    (sum, { second, requests }) => (now / 1000 - second < minuteWindowSeconds ? sum + requests : sum),
    0,
  );
