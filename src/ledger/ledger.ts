// Usage events to committed counts, by natural group commit: a flush starts as soon as the previous one ends, and takes
// everything that arrived meanwhile. Under low load no event waits for a timer; under high load the batches grow.
//
// An event is gathered, being written, and committed, or logged where the database itself refuses it. Either the ledger
// is well, and each response waits for the commit of its event, or it is degraded, because the last flush failed or
// took too long: then responses do not wait, and their counts stay in memory until a flush succeeds in time.
// - Each event is in exactly one place: in `gathering`, in `writing`, or in the database or, refused, in the log.
// - At most one flush is under way, and one that is repeated keeps its number, so that the store adds it once.
// - No response waits longer than `waitLimitMs`, whatever storage does.
// - `kill -9` loses what is not committed: for a response whose end its client has seen, nothing, unless the ledger was
//   degraded or the event had waited for `waitLimitMs`.
//
// Removed: halves of a refused flush, a memory of refused keys, and split rows. What is refused is a key's part.

import { randomUUID } from "node:crypto";
import type { Log } from "../log/log.ts";
import type { CommittedFlush, FlushId, UsageStore } from "../store/usage/contract.ts";
import { type FlushedUsage, logRefused, type RefusedUsage, UsageBatch } from "../store/usage/batch.ts";
import type { WallClock } from "../time/clock.ts";
import { wait } from "../time/wait.ts";
import type { RequestRecord } from "../domain/requests.ts";
import { type KeyUsage, noUsage, type Usage, responseRef } from "../domain/usage.ts";
import type { UsageEvent } from "../domain/usage-event.ts";

/** Adds usage events up and commits them to the store. */
export type Ledger = ReturnType<typeof createLedger>;

export interface LedgerOptions {
  store: Pick<UsageStore, "add">;
  clock: WallClock;
  log: Log;
  /** Called after each attempt to write a flush. */
  observer?: { committed(durationMs: number, counts: readonly KeyUsage[]): void; commitFailed(): void };
  /** How long a response waits for its commit, and how long one flush may take before responses stop waiting. */
  waitLimitMs?: number;
  /** Pause after a failed flush; it doubles up to `maxRetryMs`. */
  firstRetryMs?: number;
  maxRetryMs?: number;
  /** Whether requests are also logged one by one. */
  logsRequests?: boolean;
}

type Batch = ReturnType<typeof newBatch>;

/** The events that arrive while the previous flush is being written. */
const newBatch = (logsRequests: boolean, dropped: { requests: number }) => ({
  usage: new UsageBatch(logsRequests, dropped),
  /** When its first event arrived, epoch milliseconds. */
  since: 0,
  /** The committed tokens of the responses that were read. */
  added: new Map<string, Usage>(),
  /** Resolves when the batch is committed, or when responses must not wait for it any longer. */
  waited: Promise.withResolvers<void>(),
  waitTimer: undefined as Timer | undefined,
  /** Some did not wait for it any longer. */
  isReleased: false,
});

const defaults = { waitLimitMs: 1000, firstRetryMs: 50, maxRetryMs: 2000, logsRequests: false };

type State = ReturnType<typeof newState>;

function newState(options: LedgerOptions) {
  const dropped = { requests: 0 };
  return {
    ...defaults,
    ...options,
    /** Names this ledger in the ids of its flushes. */
    id: randomUUID(),
    flushNumber: 0,
    gathering: newBatch(options.logsRequests ?? defaults.logsRequests, dropped),
    /** Undefined between flushes. */
    writing: undefined as Batch | undefined,
    /** Runs while there is something to write. */
    loop: undefined as Promise<void> | undefined,
    /** Judged by each flush and not by how long an event waits, so that nothing but storage itself leads here. */
    degraded: false,
    refusedRequests: 0,
    /** Rows of the request log. */
    dropped,
    flushTimer: undefined as Timer | undefined,
    closed: false,
    /** Aborted to try again at once. */
    pause: new AbortController(),
  };
}

export function createLedger(options: LedgerOptions) {
  const { clock } = options;
  const state = newState(options);
  return {
    /**
     * Resolves once the event is committed, but after `waitLimitMs` at the latest: the event then stays buffered in memory.
     * Never rejects: a response must not fail because its usage is late.
     * @returns the tokens that it added to the counts; its own if that is not known yet
     */
    async record(event: UsageEvent): Promise<Usage> {
      const batch = state.gathering;
      if (batch.usage.isEmpty()) batch.since = clock();
      const own: Usage = batch.usage.add(event) ? event : noUsage;
      state.loop ??= writeAll(state);
      batch.isReleased ||= state.degraded;
      if (state.degraded) return own;
      batch.waitTimer ??= setTimeout(() => release(batch), state.waitLimitMs);
      await batch.waited.promise;
      const { keyId, responseId } = event;
      if (responseId === undefined || own === noUsage) return own;
      return batch.added.get(responseRef(keyId, responseId)) ?? own;
    },
    /** Writes a request that does not count to the request log. */
    logRequest: (request: RequestRecord): void => addToLog(state, (usage) => usage.addRequest(request, clock())),
    /** Corrects the row of a counted request that ended long after it was recorded. */
    amendRequest: (request: RequestRecord): void => addToLog(state, (usage) => usage.amendRequest(request)),
    /** The rows of the request log that were dropped because too many waited. */
    droppedRequests: (): number => state.dropped.requests,
    /** What is not committed yet, and for how long the oldest event has waited. */
    waiting: (): { requests: number; keys: number; sinceMs: number } => waitingIn(state),
    /** The requests that the database refused to count since the start. */
    refusedRequests: (): number => state.refusedRequests,
    /** Whether counts wait for the database whose responses do not wait for them: what they cover is still to be held. */
    areCountsWaiting: (): boolean => state.degraded || state.gathering.isReleased || state.writing?.isReleased === true,
    /**
     * Commits what is buffered, for at most `closeTimeoutMs`, and stops. The rest is lost, and logged.
     * @returns whether everything was committed
     */
    close: (closeTimeoutMs = 5000): Promise<boolean> => close(state, closeTimeoutMs),
  };
}

function addToLog(state: State, add: (usage: UsageBatch) => void): void {
  if (!state.logsRequests) return;
  const { usage } = state.gathering;
  if (usage.isEmpty()) state.gathering.since = state.clock();
  add(usage);
  state.loop ??= writeAll(state);
}

async function writeAll(state: State): Promise<void> {
  // Events of one tick share a flush: a message to the storage thread costs more than adding an event up.
  await new Promise(setImmediate);
  while (!state.gathering.usage.isEmpty() && !state.closed) {
    const batch = state.gathering;
    state.writing = batch;
    state.gathering = newBatch(state.logsRequests, state.dropped);
    const usage = batch.usage.usage();
    // Repeated under the same id, so that the store recognises a flush whose commit succeeded unnoticed.
    const id: FlushId = { ledger: state.id, number: ++state.flushNumber };
    for (let retryMs = state.firstRetryMs; !state.closed; retryMs = Math.min(retryMs * 2, state.maxRetryMs)) {
      const failure = await tryWrite(state, usage, id, batch);
      if (failure === undefined) break;
      enterDegraded(state, failure.message);
      state.pause = new AbortController();
      await wait(retryMs, state.pause.signal);
    }
    endWaits(batch);
    state.writing = undefined;
  }
  // Reset here, not when the promise resolves: an event that arrives in between must start the next loop.
  state.loop = undefined;
}

/** @returns why it failed; undefined if it is committed */
async function tryWrite(state: State, usage: FlushedUsage, id: FlushId, { added }: Batch): Promise<Error | undefined> {
  const { observer } = state;
  const startedAt = performance.now();
  let isLate = true;
  const enterIfLate = (): void => {
    if (isLate && !state.closed) enterDegraded(state, "no response in time");
  };
  // A reply that arrived while our own event loop stalled is taken in after timers and before immediates (Bun 1.4.5).
  state.flushTimer = setTimeout(() => setImmediate(enterIfLate), state.waitLimitMs);
  try {
    const { increments, responses, requests, settled } = usage;
    const committed = await state.store.add(increments, id, responses, requests, settled);
    for (const [index, { as, keyId, responseId }] of responses.entries()) {
      if (as === undefined) added.set(responseRef(keyId, responseId), committed.added?.[index] ?? noUsage);
    }
    const durationMs = performance.now() - startedAt;
    const { refused = [] } = committed;
    const isPlain = responses.length + refused.length === 0;
    observer?.committed(durationMs, isPlain ? increments : countsOf(usage, committed));
    if (refused.length > 0) leaveOut(state, refused);
    if (state.degraded && durationMs < state.waitLimitMs) {
      state.degraded = false;
      state.log.info("Database available again; writing buffered usage");
    }
    return undefined;
  } catch (error) {
    observer?.commitFailed();
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    isLate = false;
    clearTimeout(state.flushTimer);
  }
}

function countsOf(
  { increments, responses }: FlushedUsage,
  { added, refused = [] }: CommittedFlush,
): readonly KeyUsage[] {
  const ofReads = responses.map(({ keyId }, index) => ({ keyId, requestCount: 0, ...(added?.[index] ?? noUsage) }));
  const isRefused = new Set(refused.flatMap((one) => one.increments.map(({ keyId }) => keyId)));
  return [...increments, ...ofReads].filter(({ keyId }) => !isRefused.has(keyId));
}

function leaveOut(state: State, refused: readonly RefusedUsage[]): void {
  logRefused(state.log, refused);
  for (const { increments, rows } of refused) {
    for (const { requestCount } of increments) state.refusedRequests += requestCount;
    state.dropped.requests += rows;
  }
}

function endWaits(batch: Batch | undefined): void {
  clearTimeout(batch?.waitTimer);
  batch?.waited.resolve();
}

/** Lets the responses go that wait for a batch. An event that joins it later waits anew. */
function release(batch: Batch): void {
  endWaits(batch);
  batch.waited = Promise.withResolvers();
  batch.waitTimer = undefined;
  batch.isReleased ||= !batch.usage.isEmpty();
}

function enterDegraded(state: State, reason: string): void {
  if (!state.degraded) state.log.warn("Database unavailable; buffering usage in memory", { reason });
  state.degraded = true;
  if (state.writing !== undefined) release(state.writing);
  release(state.gathering);
}

function waitingIn({ writing, gathering, clock }: State): ReturnType<Ledger["waiting"]> {
  const batches = [writing, gathering].filter((batch) => batch !== undefined && !batch.usage.isEmpty());
  const increments = batches.flatMap((batch) => batch?.usage.usage().increments ?? []);
  return {
    requests: increments.reduce((sum, { requestCount }) => sum + requestCount, 0),
    keys: new Set(increments.map(({ keyId }) => keyId)).size,
    sinceMs: batches[0] === undefined ? 0 : Math.max(0, clock() - batches[0].since),
  };
}

async function close(state: State, timeoutMs: number): Promise<boolean> {
  state.pause.abort();
  const done = new AbortController();
  await Promise.race([state.loop, wait(timeoutMs, done.signal)]);
  done.abort();
  const { requests, keys } = waitingIn(state);
  if (keys > 0) state.log.error("Database unavailable at shutdown; buffered usage is lost", { requests, keys });
  state.closed = true;
  clearTimeout(state.flushTimer);
  state.pause.abort();
  endWaits(state.writing);
  endWaits(state.gathering);
  return keys === 0;
}
