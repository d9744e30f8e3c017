import { randomUUID } from "node:crypto";
import type { WallClock } from "./time/clock.ts";
import type { Log } from "./log/log.ts";
import { minuteOf } from "./time/seoul.ts";
import type { UsageEvent } from "./domain.ts";
import type { FlushId, UsageIncrement, UsageStore } from "./store/store.ts";

/** Turns receipts into committed counts. */
export interface Ledger {
  /**
   * Resolves once the receipt is committed, or after a second where storage is sick: the count then waits in memory.
   * Never rejects: a response must not fail because its count is late.
   */
  record(event: UsageEvent): Promise<void>;
  /** What waits to be written. */
  waiting(): { requests: number; keys: number; sinceMs: number };
  /** Writes what can be written and stops. */
  close(): Promise<void>;
}

export interface LedgerOptions {
  store: Pick<UsageStore, "add">;
  clock: WallClock;
  log: Log;
  /** Told of every flush: how long it took where it went through. */
  observer?: { committed(durationMs: number): void; commitFailed(): void };
  /** How long a response waits for its count. */
  waitLimitMs?: number;
  /** Pause after a failed flush; it doubles up to `slowestRetryMs`. */
  firstRetryMs?: number;
  slowestRetryMs?: number;
  /** How long `close` tries. */
  closingMs?: number;
}

/** What came together while the flush before was being written. */
interface Batch {
  /** By minute and key: memory is bounded by those, however many requests there are. */
  counts: Map<string, UsageIncrement>;
  /** When its first receipt came, on the clock. */
  since: number;
  /** Resolves when the batch is committed, or when nobody shall wait for it any longer. */
  settled: PromiseWithResolvers<void>;
  waitTimer: Timer | undefined;
}

const newBatch = (): Batch => ({
  counts: new Map(),
  since: 0,
  settled: Promise.withResolvers(),
  waitTimer: undefined,
});

/**
 * Natural group commit: a flush begins as soon as the one before it ends, and takes all that came meanwhile. There is no
 * timer to wait for when it is quiet, and batches grow by themselves when it is not.
 */
export function createLedger(options: LedgerOptions): Ledger {
  const {
    store,
    clock,
    log,
    observer,
    waitLimitMs = 1000,
    firstRetryMs = 50,
    slowestRetryMs = 2000,
    closingMs = 5000,
  } = options;
  const ledger = randomUUID();
  let flushNumber = 0;
  let gathering = newBatch();
  let writing: Batch | undefined;
  /** The loop that writes, while there is something to write. */
  let loop: Promise<void> | undefined;
  let degraded = false;
  const aborted = new AbortController();
  let endPause = (): void => {};

  function add(event: UsageEvent): void {
    const { keyId, closedAt, inputTokens, outputTokens } = event;
    if (gathering.counts.size === 0) gathering.since = clock();
    const minute = minuteOf(closedAt);
    const id = `${minute}:${keyId}`;
    const count = gathering.counts.get(id);
    if (count === undefined) {
      gathering.counts.set(id, {
        keyId,
        minute,
        requestCount: event.requestCount ?? 1,
        inputTokens,
        outputTokens,
        lastClosedAt: closedAt,
      });
      return;
    }
    count.requestCount += event.requestCount ?? 1;
    count.inputTokens += inputTokens;
    count.outputTokens += outputTokens;
    count.lastClosedAt = Math.max(count.lastClosedAt, closedAt);
  }

  async function writeAll(): Promise<void> {
    // Receipts that came in the same turn of the event loop go together: waking the thread that writes costs more than counting.
    await new Promise(setImmediate);
    while (gathering.counts.size > 0 && !aborted.signal.aborted) {
      writing = gathering;
      gathering = newBatch();
      await write(writing);
      settle(writing);
      writing = undefined;
    }
    // Here and not when the promise has resolved: a receipt that comes in between must start the next loop.
    loop = undefined;
  }

  /** The same batch under the same number until it is through: where only the answer got lost, the store knows it. */
  async function write(batch: Batch): Promise<void> {
    const counts = [...batch.counts.values()];
    const flush: FlushId = { ledger, number: ++flushNumber };
    for (let retryMs = firstRetryMs; !aborted.signal.aborted; retryMs = Math.min(retryMs * 2, slowestRetryMs)) {
      const begun = performance.now();
      try {
        await store.add(counts, flush);
        const tookMs = performance.now() - begun;
        observer?.committed(tookMs);
        if (degraded && tookMs < waitLimitMs) leaveDegraded();
        return;
      } catch (error) {
        observer?.commitFailed();
        enterDegraded(error instanceof Error ? error.message : String(error));
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

  function enterDegraded(reason: string): void {
    if (!degraded) log.warn("Storage does not take counts; they wait in memory", { reason });
    degraded = true;
    settle(writing);
    settle(gathering);
    // Whoever joins this batch once storage is well again waits for its commit.
    gathering.settled = Promise.withResolvers();
    gathering.waitTimer = undefined;
  }

  function leaveDegraded(): void {
    degraded = false;
    log.info("Storage takes counts again");
  }

  function waiting(): ReturnType<Ledger["waiting"]> {
    const batches = [writing, gathering].filter((batch) => batch !== undefined && batch.counts.size > 0);
    const counts = batches.flatMap((batch) => [...(batch?.counts.values() ?? [])]);
    return {
      requests: counts.reduce((sum, count) => sum + count.requestCount, 0),
      keys: new Set(counts.map((count) => count.keyId)).size,
      sinceMs: batches[0] === undefined ? 0 : Math.max(0, clock() - batches[0].since),
    };
  }

  return {
    async record(event) {
      add(event);
      loop ??= writeAll();
      // Nobody waits for a disk that is known to be sick.
      if (degraded) return;
      gathering.waitTimer ??= setTimeout(() => enterDegraded("no answer"), waitLimitMs);
      await gathering.settled.promise;
    },
    waiting,
    async close() {
      endPause();
      const deadline = Promise.withResolvers<void>();
      const timer = setTimeout(deadline.resolve, closingMs);
      await Promise.race([loop, deadline.promise]);
      clearTimeout(timer);
      const { requests, keys } = waiting();
      if (requests > 0) log.error("Counts were lost: storage did not take them before the end", { requests, keys });
      aborted.abort();
      endPause();
      settle(writing);
      settle(gathering);
    },
  };
}
