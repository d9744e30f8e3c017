import {
  admitted,
  databaseNow,
  dropAhead,
  hasSameLimits,
  type KeyLease,
  type LeaseWork,
  needsWrite,
  refuse,
  reserve,
  type State,
  unlimited,
  type WaitingRequest,
  wantedAhead,
} from "./process-leases.ts";
import { decideAlone, endWait, leaveDegraded, noResponse, startWait } from "./degraded.ts";
import { judge, type Judged, type KeyLoad, needsLease, tokensAhead, waitOf } from "../store/limits/windows.ts";
import { othersEndMs } from "../domain/admissions.ts";
import type { Lease, LeaseRequest } from "../store/limits/contract.ts";
import { hasLimit, type KeyLimits, limitKinds, requestLimits } from "../domain/limits.ts";

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
export function enqueue(state: State, lease: KeyLease, request: WaitingRequest): void {
  if (request.isAdmitted) lease.waiting.unshift(request);
  else lease.waiting.push(request);
  state.waitingSince ??= state.monotonic();
  state.changed.add(lease);
  startWait(state);
  startLoop(state);
}

function isWaiting({ changed }: State): boolean {
  for (const { waiting } of changed) if (waiting.length > 0) return true;
  return false;
}

function startLoop(state: State): void {
  if (!state.closed) state.loop ??= writeAll(state);
}

async function writeAll(state: State): Promise<void> {
  // Requests of one tick share a batch.
  await new Promise(setImmediate);
  if (!state.isListed) await state.watch.start();
  state.isListed = true;
  while (state.isUpkeepDue || (!state.degraded && isWaiting(state))) await writeBatch(state);
  // Reset here, not when the promise resolves: a request that arrives in between must start the next loop.
  state.loop = undefined;
}

async function writeBatch(state: State): Promise<void> {
  const works = takeBatch(state);
  // While this process decides alone, an empty batch is a trial too.
  if (works.length === 0 && !state.degraded) return startUpkeep(state);
  state.writing = works;
  const taken = await tryToTake(state, works);
  state.writing = [];
  endWait(state);
  if (taken === undefined) {
    for (const work of works) putBack(work);
  } else {
    if (state.degraded) leaveDegraded(state);
    for (const [index, work] of works.entries()) {
      const lease = taken.leases[index];
      if (lease !== undefined) settle(state, work, { lease, sentAt: taken.sentAt });
    }
  }
  if (!state.degraded && isWaiting(state)) startWait(state);
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
  for (const lease of changed) {
    if (lease.ahead !== undefined && now >= lease.ahead.endsAt) dropAhead(lease);
    if (!needsWrite(lease)) {
      if (lease.ahead === undefined) changed.delete(lease);
    } else if (isUpkeepDue || lease.waiting.length > 0) {
      const work = takeWork(lease, { second, most });
      isLeft ||= lease.waiting.length > 0;
      most -= work.request.ahead;
      works.push(work);
    }
  }
  if (!isLeft) state.waitingSince = undefined;
  return works;
}

/** Takes out what the next batch writes. @param most how many may be asked for ahead */
function takeWork(lease: KeyLease, { second, most }: { second: number; most: number }): LeaseWork {
  const { keyId, places, corrections, refused, ahead } = lease;
  // Those that came with others wait for the next batch: each is judged by its own.
  const limits = lease.waiting[0]?.limits ?? lease.limits;
  const isAmongThem = (one: WaitingRequest): boolean => hasSameLimits(one.limits, limits);
  const waiting = lease.waiting.filter(isAmongThem);
  const others = lease.waiting.filter((one) => !isAmongThem(one));
  const request: LeaseRequest = {
    keyId,
    limits,
    places,
    tokens: lease.tokens + (ahead === undefined ? 0 : ahead.left * ahead.tokens),
    requests: waiting.map(({ tokens, leastTokens }) => ({ tokens, leastTokens })),
    ahead: Math.min(most, wantedAhead(lease, second)),
    corrections,
    refused,
  };
  // Beside requests that hold nothing, nothing is given back either: the next batch does.
  const isDue = lease.isDue && waiting.length > 0 && !needsLease(limits);
  Object.assign(lease, { waiting: others, corrections: [], sent: corrections, refused: 0, isDue });
  return { lease, waiting, request };
}

/** Puts back what could not be written. */
function putBack({ lease, waiting, request }: LeaseWork): void {
  lease.waiting.unshift(...waiting.filter(({ isDecided }) => !isDecided));
  lease.corrections.push(...request.corrections);
  lease.sent = [];
  lease.refused += request.refused;
  lease.isDue = true;
}

/** @param load what counts without those ahead. @param sentAt when it was asked for, by the monotonic clock */
function keepAhead(
  { lease, request }: LeaseWork,
  { ahead, now }: Lease,
  { load, sentAt }: { load: KeyLoad; sentAt: number },
): void {
  if (ahead === 0) {
    if (request.ahead > 0) lease.pace.wanted = 0;
    return;
  }
  dropAhead(lease);
  const tokens = tokensAhead(request.requests);
  // The network only shortens it, and the clocks of the two machines may be anything.
  const endsAt = sentAt + 1000 - (now % 1000);
  lease.ahead = { limits: request.limits, tokens, left: ahead, load, second: Math.floor(now / 1000), endsAt };
}

/** @returns undefined if the database did not take the batch before the requests had waited too long */
async function tryToTake(
  state: State,
  works: readonly LeaseWork[],
): Promise<{ leases: Lease[]; sentAt: number } | undefined> {
  const { store, instance, monotonic } = state;
  const requests = works.map(({ request }) => request);
  state.failure = noResponse;
  for (;;) {
    const sentAt = monotonic();
    state.version += 1;
    try {
      return { leases: await store.take({ instance, version: state.version, requests }), sentAt };
    } catch (error) {
      state.failure = error instanceof Error ? error.message : String(error);
      if (state.degraded || state.closed) return undefined;
    }
    // What was subtracted may be already.
    for (const { request } of works) request.corrections = request.corrections.filter(({ requests: n }) => n > 0);
    await Bun.sleep(retryMs);
  }
}

function settle(state: State, work: LeaseWork, { lease: taken, sentAt }: { lease: Lease; sentAt: number }): void {
  const { lease, waiting, request } = work;
  state.aheadMs = taken.now - sentAt;
  const others: KeyLoad = {
    ...taken.load,
    inFlight: taken.load.inFlight - request.places,
    reserved: taken.load.reserved - request.tokens,
  };
  const judged = judge(taken.load, request);
  const load = judged.at(-1)?.load ?? taken.load;
  lease.sent = [];
  // A request that asks no limit of requests hears of none.
  const minuteRequests = hasLimit(request.limits, requestLimits)
    ? load.minuteRequests + taken.ahead
    : lease.known.others.minuteRequests;
  lease.known = { others: { ...others, minuteRequests }, at: taken.now };
  for (const [index, one] of waiting.entries()) {
    const result = judged[index];
    if (result === undefined) continue;
    if (one.isDecided) takeBack(lease, request.limits, result, taken);
    else settleOne(state, { lease, limits: request.limits, taken, others, result, one });
  }
  keepAhead(work, taken, { load, sentAt });
  if (needsWrite(lease) || lease.ahead !== undefined) state.changed.add(lease);
}

/** The request was decided meanwhile: what the database has of it is corrected with the next batch. */
function takeBack(lease: KeyLease, limits: KeyLimits, { refusedBy }: Judged, { now }: Lease): void {
  lease.isDue = true;
  if (refusedBy === undefined && hasLimit(limits, requestLimits)) {
    lease.corrections.push({ second: Math.floor(now / 1000), requests: -1 });
  }
}

interface Settled {
  lease: KeyLease;
  /** By which it was judged: there may be newer ones. */
  limits: KeyLimits;
  taken: Lease;
  /** What others hold, and what counts without this batch. */
  others: KeyLoad;
  result: Judged;
  one: WaitingRequest;
}

function settleOne(state: State, { lease, limits, taken, others, result, one }: Settled): void {
  const { refusedBy, load, tokens } = result;
  if (refusedBy === undefined) {
    if (needsLease(limits)) reserve(lease, tokens);
    const second = Math.floor(taken.now / 1000);
    return one.settled.resolve(admitted(state, lease, { limits, tokens, second, load }));
  }
  const waitMs = waitOf(result, { limits, tokens }, taken);
  const isHeldByOthers = (limitKinds[refusedBy].counts === "places" ? others.inFlight : others.reserved) > 0;
  if (waitMs === undefined && isHeldByOthers && one.tries < maxTries) return askAgain(state, lease, one);
  one.settled.resolve(refuse(state, lease, one, { load, refusedBy, waitMs: waitMs ?? othersEndMs }));
}

/** Another process may hold what it gives back at once, such as after a response whose client asks here next. */
function askAgain(state: State, lease: KeyLease, one: WaitingRequest): void {
  setTimeout(
    () => {
      if (state.closed) one.settled.resolve(unlimited);
      else if (state.degraded) one.settled.resolve(decideAlone(state, lease, one));
      else enqueue(state, lease, one);
    },
    firstTryMs * 2 ** one.tries,
  );
  one.tries += 1;
}

/** Writes what ended and what nobody came for, a little later. */
export function startUpkeep(state: State): void {
  if (state.changed.size === 0 || state.closed || state.degraded) return;
  state.upkeepTimer ??= setTimeout(() => {
    state.upkeepTimer = undefined;
    if (state.degraded) return;
    const now = state.monotonic();
    for (const lease of state.changed) {
      if (lease.ahead !== undefined && now >= lease.ahead.endsAt) dropAhead(lease);
    }
    if (state.changed.values().some(needsWrite)) hurryUpkeep(state);
    else startUpkeep(state);
  }, upkeepMs).unref();
}

/** Writes it at once. */
export function hurryUpkeep(state: State): void {
  state.isUpkeepDue = true;
  startLoop(state);
}
