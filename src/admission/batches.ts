import {
  Admitted,
  databaseNow,
  dropAhead,
  hasSameLimits,
  type Claim,
  type Group,
  type LeaseWork,
  needsWrite,
  refuse,
  type State,
  unlimited,
  type WaitingRequest,
  wantedAhead,
} from "./process-leases.ts";
import { decideAlone, enterDegraded, leaveDegraded } from "./degraded.ts";
import { noResponse } from "../time/wait.ts";
import {
  type Bound,
  judge,
  type Judged,
  leaseLimits,
  noLoad,
  type Size,
  tokensAhead,
  waitOf,
} from "../store/limits/judge.ts";
import { othersEndMs } from "../domain/admissions.ts";
import type { Lease, LeaseRequest } from "../store/limits/contract.ts";
import { hasLimit, limitKinds, requestLimits } from "../domain/limits.ts";

/** Pause before a failed batch is written again. */
const retryMs = 50;
/** Requests ahead in one batch: of many keys that send much, each batch has some. */
const maxAhead = 256;
/** How often a request is asked again, after 4, 8, 16… ms. */
const maxTries = 6;
const firstTryMs = 4;
/** So often what ended on a busy key is given back, and what nobody came for. */
const upkeepMs = 50;

/** Has a request wait for the next batch. */
export function enqueue(state: State, group: Group, request: WaitingRequest): void {
  if (request.isAdmitted) group.waiting.unshift(request);
  else group.waiting.push(request);
  state.waitingSince ??= state.monotonic();
  state.changed.add(group);
  startWait(state);
  state.loop ??= writeAll(state);
}

/** A reply that arrived while our own event loop stalled is taken in after timers and before immediates (Bun 1.4.5). */
function startWait(state: State): void {
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

async function writeAll(state: State): Promise<void> {
  // Requests of one tick share a batch.
  await new Promise(setImmediate);
  if (!state.isListed) await state.watch.start();
  state.isListed = true;
  while (state.isUpkeepDue || (!state.degraded && state.waitingSince !== undefined)) await writeBatch(state);
  // Reset here, not when the promise resolves: a request that arrives in between must start the next loop.
  state.loop = undefined;
}

async function writeBatch(state: State): Promise<void> {
  const works = takeBatch(state);
  // While this process decides alone, an empty batch is a trial too.
  if (works.length === 0 && !state.degraded) return startUpkeep(state);
  const requests: LeaseRequest[] = [];
  for (const { request } of works) requests.push(request);
  state.writing = works;
  state.failure = noResponse;
  let leases: Lease[] | undefined;
  let sentAt = 0;
  while (leases === undefined) {
    sentAt = state.monotonic();
    state.version += 1;
    try {
      leases = await state.store.take({ instance: state.instance, version: state.version, requests });
    } catch (error) {
      state.failure = error instanceof Error ? error.message : String(error);
      // The requests have waited too long.
      if (state.degraded || state.closed) break;
      // What was subtracted may be already.
      for (const one of requests.flatMap(({ subjects }) => subjects))
        one.corrections = one.corrections.filter(({ requests: n }) => n > 0);
      await Bun.sleep(retryMs);
    }
  }
  state.writing = [];
  endWait(state);
  if (leases !== undefined && state.degraded) leaveDegraded(state);
  for (const [index, work] of works.entries()) {
    const lease = leases?.[index];
    if (leases === undefined) putBack(work);
    else if (lease !== undefined) settle(state, work, { lease, sentAt });
  }
  if (!state.degraded && state.waitingSince !== undefined) startWait(state);
  startUpkeep(state);
}

function takeBatch(state: State): LeaseWork[] {
  const { changed } = state;
  const [second, now] = [Math.floor(databaseNow(state) / 1000), state.monotonic()];
  // A batch that is written anyway takes along what would soon have one of its own.
  const isUpkeepDue = state.isUpkeepDue || now - state.upkeptAt >= upkeepMs / 2;
  if (isUpkeepDue) {
    state.isUpkeepDue = false;
    state.upkeptAt = now;
    clearTimeout(state.upkeepTimer);
    state.upkeepTimer = undefined;
  }
  let most = maxAhead;
  let isLeft = false;
  const works: LeaseWork[] = [];
  // All of them first: groups share leases, and all that is written of one has to be the same.
  for (const group of changed) if (group.ahead !== undefined && now >= group.ahead.endsAt) dropAhead(group);
  for (const group of changed) {
    if (!needsWrite(group)) {
      if (group.ahead === undefined) changed.delete(group);
    } else if (isUpkeepDue || group.waiting.length > 0) {
      const work = takeWork(group, { second, most });
      isLeft ||= group.waiting.length > 0;
      most -= work.request.ahead;
      works.push(work);
    }
  }
  if (!isLeft) state.waitingSince = undefined;
  return works;
}

/** Takes out what the next batch writes. @param most how many may be asked for ahead */
function takeWork(group: Group, { second, most }: { second: number; most: number }): LeaseWork {
  // Those that came with others wait for the next batch: each is judged by its own.
  const claims = group.waiting[0]?.claims ?? group.claims;
  const [waiting, others, requests]: [WaitingRequest[], WaitingRequest[], Size[]] = [[], [], []];
  for (const one of group.waiting) {
    if (hasSameLimits(one.claims, claims)) waiting.push(one);
    else others.push(one);
  }
  for (const { tokens, leastTokens } of waiting) requests.push({ tokens, leastTokens });
  const ahead = Math.min(most, wantedAhead(group, second));
  const subjects: LeaseRequest["subjects"][number][] = [];
  for (const { lease, limits } of claims) {
    const { id, places, tokens, aheadTokens, corrections, sent, refused } = lease;
    // Beside requests that hold nothing, nothing is given back either: the next batch does.
    const isDue = lease.isDue && waiting.length > 0 && !hasLimit(limits, leaseLimits);
    Object.assign(lease, { corrections: [], sent: [...sent, ...corrections], refused: 0, isDue });
    subjects.push({ id, limits, places, tokens: tokens + aheadTokens, corrections, refused });
  }
  group.waiting = others;
  return { group, claims, waiting, request: { subjects, requests, ahead } };
}

/** Puts back what could not be written. */
function putBack({ group, claims, waiting, request }: LeaseWork): void {
  group.waiting.unshift(...waiting.filter(({ isDecided }) => !isDecided));
  for (const [at, { lease }] of claims.entries()) {
    const { corrections = [], refused = 0 } = request.subjects[at] ?? {};
    lease.corrections.push(...corrections);
    lease.sent = [];
    lease.refused += refused;
    lease.isDue = true;
  }
}

/** Judges the requests of a batch as the database did. By the claims of the batch: the group may have newer ones. */
function settle(state: State, work: LeaseWork, { lease: taken, sentAt }: { lease: Lease; sentAt: number }): void {
  const { group, claims, waiting, request } = work;
  const { now } = taken;
  const second = Math.floor(now / 1000);
  state.aheadMs = now - sentAt;
  const before: Bound[] = [];
  for (const [at, { limits }] of claims.entries()) before.push({ limits, load: taken.subjects[at]?.load ?? noLoad });
  const judged = judge(before, request.requests);
  const after = judged.at(-1)?.bounds ?? before;
  for (const [at, { lease, limits }] of claims.entries()) {
    const { load, places, tokens } = taken.subjects[at] ?? { load: noLoad, places: 0, tokens: 0 };
    const others = { ...load, inFlight: load.inFlight - places, reserved: load.reserved - tokens };
    // A request that asks no limit of requests hears of none.
    others.minuteRequests = hasLimit(limits, requestLimits)
      ? (after[at]?.load.minuteRequests ?? 0) + taken.ahead
      : lease.known.others.minuteRequests;
    lease.sent = [];
    lease.known = { others, at: now };
  }
  for (const [index, one] of waiting.entries()) {
    const result = judged[index];
    if (result === undefined) continue;
    const { refusedBy, at, tokens, bounds } = result;
    if (one.isDecided) takeBack(claims, result, taken);
    else if (refusedBy === undefined) {
      one.settled.resolve(new Admitted(state, group, { claims, tokens, second, bounds }));
    } else {
      const waitMs = waitOf(result, { now, seconds: taken.subjects[at]?.seconds });
      const others = claims[at]?.lease.known.others ?? noLoad;
      const isHeldByOthers = (limitKinds[refusedBy].counts === "places" ? others.inFlight : others.reserved) > 0;
      if (waitMs === undefined && isHeldByOthers && one.tries < maxTries) askAgain(state, group, one);
      else one.settled.resolve(refuse(state, group, one, { refusedBy, at, bounds, waitMs: waitMs ?? othersEndMs }));
    }
  }
  if (taken.ahead > 0) keepAhead(work, taken, { bounds: after, sentAt });
  else if (request.ahead > 0) group.pace.wanted = 0;
  if (needsWrite(group) || group.ahead !== undefined) state.changed.add(group);
}

/** @param bounds what counts without those ahead. @param sentAt when it was asked for, by the monotonic clock */
function keepAhead(
  { group, claims, request }: LeaseWork,
  { ahead, now }: Lease,
  { bounds, sentAt }: { bounds: readonly Bound[]; sentAt: number },
): void {
  dropAhead(group);
  const tokens = tokensAhead(request.requests);
  for (const { lease } of claims) lease.aheadTokens += ahead * tokens;
  // The network only shortens it, and the clocks of the two machines may be anything.
  const endsAt = sentAt + 1000 - (now % 1000);
  group.ahead = { claims, tokens, left: ahead, bounds, second: Math.floor(now / 1000), endsAt };
}

/** The request was decided meanwhile: what the database has of it is corrected with the next batch. */
function takeBack(claims: readonly Claim[], { refusedBy }: Judged, { now }: Lease): void {
  for (const { lease, limits } of claims) {
    lease.isDue = true;
    if (refusedBy === undefined && hasLimit(limits, requestLimits)) {
      lease.corrections.push({ second: Math.floor(now / 1000), requests: -1 });
    }
  }
}

/** Another process may hold what it gives back at once, such as after a response whose client asks here next. */
function askAgain(state: State, group: Group, one: WaitingRequest): void {
  setTimeout(
    () => {
      if (state.closed) one.settled.resolve(unlimited);
      else if (state.degraded) one.settled.resolve(decideAlone(state, group, one));
      else enqueue(state, group, one);
    },
    firstTryMs * 2 ** one.tries,
  );
  one.tries += 1;
}

/** Writes what ended and what nobody came for, at once or a little later. */
export function startUpkeep(state: State, isUrgent = false): void {
  if (isUrgent) state.isUpkeepDue = true;
  if (state.closed) return;
  if (isUrgent) state.loop ??= writeAll(state);
  else if (state.changed.size > 0 && !state.degraded) {
    state.upkeepTimer ??= setTimeout(upkeep, upkeepMs, state).unref();
  }
}

function upkeep(state: State): void {
  state.upkeepTimer = undefined;
  if (state.degraded) return;
  const now = state.monotonic();
  for (const group of state.changed) if (group.ahead !== undefined && now >= group.ahead.endsAt) dropAhead(group);
  startUpkeep(state, state.changed.values().some(needsWrite));
}
