import { randomUUID } from "node:crypto";
import { type RequestRecord } from "../domain/requests.ts";
import { type UsageEvent } from "../domain/usage-event.ts";
import { noUsage } from "../domain/usage.ts";
import { type Usage } from "../domain/usage.ts";
import type { Log } from "../log/log.ts";
import { createRefusedUsage } from "./refused-usage.ts";
import type { FlushId, UsageStore } from "../store/usage/contract.ts";
import { StorageError } from "../store/store.ts";
import { createUsageBatch, type FlushedUsage, halvesOf, partsByKeys, type UsageBatch } from "../store/usage/batch.ts";
import type { WallClock } from "../time/clock.ts";

/** Adds usage events up and commits them to the store. */
export interface Ledger {
  /**
   * Resolves once the event is committed, but after `waitLimitMs` at the latest: the event then stays buffered in memory.
   * Never rejects: a response must not fail because its usage is late.
   * @returns the tokens that it added to the counts; its own if that is not known yet
   */
  record(event: UsageEvent): Promise<Usage>;
  /** Writes a request that does not count to the request log. */
  logRequest(request: RequestRecord): void;
  /** The rows of the request log that were dropped because too many waited. */
  droppedRequests(): number;
  /** What is not committed yet, and for how long the oldest event has waited. */
  waiting(): { requests: number; keys: number; sinceMs: number };
  /** The requests whose usage the database refuses. It is kept in memory. */
  refusedRequests(): number;
  /** Whether counts are written, wait for the database, or contain numbers that it refuses. */
  state(): "ok" | "waiting" | "partly refused";
  /**
   * Commits what is buffered, for at most `closeTimeoutMs`, and stops. The rest is lost, and logged.
   * @returns whether everything was committed
   */
  close(closeTimeoutMs?: number): Promise<boolean>;
}

export interface LedgerOptions {
  store: Pick<UsageStore, "add">;
  clock: WallClock;
  log: Log;
  /** Called after each attempt to write a flush. */
  observer?: { committed(durationMs: number): void; commitFailed(): void };
  /** How long a response waits for its commit, and how long one flush may take before responses stop waiting. */
  waitLimitMs?: number;
  /** Pause after a failed flush; it doubles up to `maxRetryMs`. */
  firstRetryMs?: number;
  maxRetryMs?: number;
  /** Whether requests are also logged one by one. */
  logsRequests?: boolean;
}

/** The events that arrive while the previous flush is being written. */
interface Batch {
  usage: UsageBatch;
  /** When its first event arrived, epoch milliseconds. */
  since: number;
  /** The committed tokens of its responses, by id. */
  added: Map<string, Usage>;
  /** Resolves when the batch is committed, or when responses must not wait for it any longer. */
  settled: PromiseWithResolvers<void>;
  waitTimer: Timer | undefined;
}

const newBatch = (logsRequests: boolean): Batch => ({
  usage: createUsageBatch(logsRequests),
  since: 0,
  added: new Map(),
  settled: Promise.withResolvers(),
  waitTimer: undefined,
});

/**
 * Natural group commit: a flush starts as soon as the previous one ends, and takes everything that arrived meanwhile. Under
 * low load no event waits for a timer; under high load the batches grow.
 */
export function createLedger(options: LedgerOptions): Ledger {
  const { store, clock, log, observer, waitLimitMs = 1000, firstRetryMs = 50, maxRetryMs = 2000 } = options;
  const { logsRequests = false } = options;
  const ledger = randomUUID();
  const refused = createRefusedUsage(log, clock);
  let flushNumber = 0;
  let gathering = newBatch(logsRequests);
  let dropped = 0;
  let writing: Batch | undefined;
  /** The loop that writes; undefined while there is nothing to write. */
  let loop: Promise<void> | undefined;
  /**
   * The last flush failed or took too long: responses do not wait for commits. Judged by each flush and not by how long an
   * event waits, so that nothing but storage itself leads here.
   */
  let degraded = false;
  let flushTimer: Timer | undefined;
  const aborted = new AbortController();
  let endPause = (): void => {};

  async function writeAll(): Promise<void> {
    // Events of one tick share a flush: a message to the storage thread costs more than adding an event up.
    await new Promise(setImmediate);
    while (!gathering.usage.isEmpty() && !aborted.signal.aborted) {
      writing = gathering;
      gathering = newBatch(logsRequests);
      dropped += writing.usage.droppedRequests();
      // The keys whose usage was refused have a flush of their own, so that they do not make that of the others fail.
      for (const part of partsByKeys(writing.usage.usage(), refused.keys)) await write(part, writing);
      settle(writing);
      writing = undefined;
    }
    // Reset here, not when the promise resolves: an event that arrives in between must start the next loop.
    loop = undefined;
  }

  /** Repeats the same part under the same flush id, so the store recognises a flush whose commit succeeded unnoticed. */
  async function write(part: FlushedUsage, batch: Batch): Promise<void> {
    const flush: FlushId = { ledger, number: ++flushNumber };
    for (let retryMs = firstRetryMs; !aborted.signal.aborted; retryMs = Math.min(retryMs * 2, maxRetryMs)) {
      const failure = await tryToWrite(part, flush, batch);
      if (failure === undefined) return;
      if (failure instanceof StorageError && failure.isRefusal) return writeHalves(part, batch, failure);
      enterDegraded(failure.message);
      await pause(retryMs);
    }
  }

  /** @returns why it failed; undefined if it is committed */
  async function tryToWrite(part: FlushedUsage, flush: FlushId, batch: Batch): Promise<Error | undefined> {
    const startedAt = performance.now();
    let isLate = true;
    const enterIfLate = (): void => {
      if (isLate && !aborted.signal.aborted) enterDegraded("no response in time");
    };
    // A reply that arrived while our own event loop stalled is taken in after timers and before immediates (Bun 1.4.5).
    flushTimer = setTimeout(() => setImmediate(enterIfLate), waitLimitMs);
    try {
      const added = await store.add(part.increments, flush, part.responses, part.requests, part.settled);
      for (const [index, { responseId }] of part.responses.entries()) {
        batch.added.set(responseId, added?.[index] ?? noUsage);
      }
      const durationMs = performance.now() - startedAt;
      observer?.committed(durationMs);
      if (degraded && durationMs < waitLimitMs) leaveDegraded();
      for (const increment of refused.take(part)) gathering.usage.addIncrement(increment);
      return undefined;
    } catch (error) {
      observer?.commitFailed();
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      isLate = false;
      clearTimeout(flushTimer);
    }
  }

  /** Finds what the database refuses, and sets it aside. */
  async function writeHalves(part: FlushedUsage, batch: Batch, reason: StorageError): Promise<void> {
    const halves = halvesOf(part);
    for (const half of halves ?? []) await write(half, batch);
    if (halves !== undefined) return;
    refused.add(part, reason.message);
    dropped += part.requests?.rows.length ?? 0;
  }

  function pause(ms: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    endPause = () => {
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }

  function settle(batch: Batch | undefined): void {
    clearTimeout(batch?.waitTimer);
    batch?.settled.resolve();
  }

  /** Lets the responses go that wait for a batch. An event that joins it later waits anew. */
  function release(batch: Batch): void {
    settle(batch);
    batch.settled = Promise.withResolvers();
    batch.waitTimer = undefined;
  }

  function enterDegraded(reason: string): void {
    if (!degraded) log.warn("Database unavailable; buffering usage in memory", { reason });
    degraded = true;
    if (writing !== undefined) release(writing);
    release(gathering);
  }

  function leaveDegraded(): void {
    degraded = false;
    log.info("Database available again; writing buffered usage");
  }

  function waiting(): ReturnType<Ledger["waiting"]> {
    const batches = [writing, gathering].filter((batch) => batch !== undefined && !batch.usage.isEmpty());
    const increments = batches.flatMap((batch) => batch?.usage.usage().increments ?? []);
    return {
      requests: increments.reduce((sum, { requestCount }) => sum + requestCount, 0),
      keys: new Set(increments.map(({ keyId }) => keyId)).size,
      sinceMs: batches[0] === undefined ? 0 : Math.max(0, clock() - batches[0].since),
    };
  }

  return {
    async record(event) {
      const batch = gathering;
      if (batch.usage.isEmpty()) batch.since = clock();
      const own: Usage = batch.usage.add(event) ? event : noUsage;
      loop ??= writeAll();
      if (degraded) return own;
      batch.waitTimer ??= setTimeout(() => release(batch), waitLimitMs);
      await batch.settled.promise;
      return event.responseId === undefined || own === noUsage ? own : (batch.added.get(event.responseId) ?? own);
    },
    logRequest(request) {
      if (!logsRequests) return;
      if (gathering.usage.isEmpty()) gathering.since = clock();
      gathering.usage.addRequest(request, clock());
      loop ??= writeAll();
    },
    droppedRequests: () => dropped + gathering.usage.droppedRequests(),
    waiting,
    refusedRequests: refused.requests,
    state: () => (degraded ? "waiting" : refused.keys.size > 0 ? "partly refused" : "ok"),
    async close(closeTimeoutMs = 5000) {
      endPause();
      const timedOut = Promise.withResolvers<void>();
      const timer = setTimeout(timedOut.resolve, closeTimeoutMs);
      await Promise.race([loop, timedOut.promise]);
      clearTimeout(timer);
      const { requests, keys } = waiting();
      if (keys > 0) log.error("Database unavailable at shutdown; buffered usage is lost", { requests, keys });
      const hasRefused = refused.logAll();
      aborted.abort();
      clearTimeout(flushTimer);
      endPause();
      settle(writing);
      settle(gathering);
      return keys === 0 && !hasRefused;
    },
  };
}
