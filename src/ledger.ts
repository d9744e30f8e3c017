import { randomUUID } from "node:crypto";
import type { UsageEvent } from "./domain.ts";
import type { Log } from "./log/log.ts";
import type { FlushId, UsageIncrement, UsageStore } from "./store/store.ts";
import type { WallClock } from "./time/clock.ts";
import { minuteOf } from "./time/seoul.ts";

/** Adds usage events up and commits them to the store. */
export interface Ledger {
  /**
   * Resolves once the event is committed, but after `waitLimitMs` at the latest: the event then stays buffered in memory.
   * Never rejects: a response must not fail because its usage is late.
   */
  record(event: UsageEvent): Promise<void>;
  /** What is not committed yet, and for how long the oldest event has waited. */
  waiting(): { requests: number; keys: number; sinceMs: number };
  /** Commits what is buffered, for at most `closeTimeoutMs`, and stops. The rest is lost, and logged. */
  close(): Promise<void>;
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
  closeTimeoutMs?: number;
}

/** The events that arrive while the previous flush is being written. */
interface Batch {
  /** By minute and key, so memory does not grow with the number of requests. */
  increments: Map<string, UsageIncrement>;
  /** When its first event arrived, epoch milliseconds. */
  since: number;
  /** Resolves when the batch is committed, or when responses must not wait for it any longer. */
  settled: PromiseWithResolvers<void>;
  waitTimer: Timer | undefined;
}

const newBatch = (): Batch => ({
  increments: new Map(),
  since: 0,
  settled: Promise.withResolvers(),
  waitTimer: undefined,
});

/**
 * Natural group commit: a flush starts as soon as the previous one ends, and takes everything that arrived meanwhile. Under
 * low load no event waits for a timer; under high load the batches grow.
 */
export function createLedger(options: LedgerOptions): Ledger {
  const {
    store,
    clock,
    log,
    observer,
    waitLimitMs = 1000,
    firstRetryMs = 50,
    maxRetryMs = 2000,
    closeTimeoutMs = 5000,
  } = options;
  const ledger = randomUUID();
  let flushNumber = 0;
  let gathering = newBatch();
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

  function add({ keyId, closedAt, requestCount = 1, inputTokens, outputTokens }: UsageEvent): void {
    if (gathering.increments.size === 0) gathering.since = clock();
    const minute = minuteOf(closedAt);
    const id = `${minute}:${keyId}`;
    const increment = gathering.increments.get(id);
    if (increment === undefined) {
      gathering.increments.set(id, {
        keyId,
        minute,
        requestCount,
        inputTokens,
        outputTokens,
        lastClosedAt: closedAt,
      });
      return;
    }
    increment.requestCount += requestCount;
    increment.inputTokens += inputTokens;
    increment.outputTokens += outputTokens;
    increment.lastClosedAt = Math.max(increment.lastClosedAt, closedAt);
  }

  async function writeAll(): Promise<void> {
    // Events of one tick share a flush: a message to the storage thread costs more than adding an event up.
    await new Promise(setImmediate);
    while (gathering.increments.size > 0 && !aborted.signal.aborted) {
      writing = gathering;
      gathering = newBatch();
      await write(writing);
      settle(writing);
      writing = undefined;
    }
    // Reset here, not when the promise resolves: an event that arrives in between must start the next loop.
    loop = undefined;
  }

  /** Repeats the same batch under the same flush id, so the store recognises a flush whose commit succeeded unnoticed. */
  async function write(batch: Batch): Promise<void> {
    const increments = [...batch.increments.values()];
    const flush: FlushId = { ledger, number: ++flushNumber };
    for (let retryMs = firstRetryMs; !aborted.signal.aborted; retryMs = Math.min(retryMs * 2, maxRetryMs)) {
      const startedAt = performance.now();
      flushTimer = setTimeout(() => enterDegraded("no response in time"), waitLimitMs);
      try {
        await store.add(increments, flush);
        const durationMs = performance.now() - startedAt;
        observer?.committed(durationMs);
        if (degraded && durationMs < waitLimitMs) leaveDegraded();
        return;
      } catch (error) {
        observer?.commitFailed();
        enterDegraded(error instanceof Error ? error.message : String(error));
      } finally {
        clearTimeout(flushTimer);
      }
      await pause(retryMs);
    }
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
    const batches = [writing, gathering].filter((batch) => batch !== undefined && batch.increments.size > 0);
    const increments = batches.flatMap((batch) => [...(batch?.increments.values() ?? [])]);
    return {
      requests: increments.reduce((sum, { requestCount }) => sum + requestCount, 0),
      keys: new Set(increments.map(({ keyId }) => keyId)).size,
      sinceMs: batches[0] === undefined ? 0 : Math.max(0, clock() - batches[0].since),
    };
  }

  return {
    async record(event) {
      add(event);
      loop ??= writeAll();
      if (degraded) return;
      const batch = gathering;
      batch.waitTimer ??= setTimeout(() => release(batch), waitLimitMs);
      await batch.settled.promise;
    },
    waiting,
    async close() {
      endPause();
      const timedOut = Promise.withResolvers<void>();
      const timer = setTimeout(timedOut.resolve, closeTimeoutMs);
      await Promise.race([loop, timedOut.promise]);
      clearTimeout(timer);
      const { requests, keys } = waiting();
      if (requests > 0) log.error("Database unavailable at shutdown; buffered usage is lost", { requests, keys });
      aborted.abort();
      clearTimeout(flushTimer);
      endPause();
      settle(writing);
      settle(gathering);
    },
  };
}
