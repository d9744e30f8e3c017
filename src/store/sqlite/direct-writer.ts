import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import { createBackoff } from "../../time/backoff.ts";
import { minuteOf } from "../../time/seoul.ts";
import { prepareFindActiveKey } from "../keys.ts";
import type { KeyStore } from "../key-store.ts";
import type { FlushedRequests } from "../request-log-store.ts";
import type { UsageStore } from "../usage-store.ts";
import { isBusy, openDirectWriter, pagesPerCheckpoint } from "./engine.ts";
import { toStorageError } from "../storage-error.ts";
import { prepareAppend, type RefusedCounts } from "./journal.ts";
import type { StorageWorker } from "./worker-client.ts";

/** How long the storage thread commits everything after a commit here that was slow or failed; doubles each time. */
export const firstPauseMs = 250;
const maxPauseMs = 60_000;
/** More rows take longer than a request should hold up the others. */
const maxRows = 256;
/** After so many rows the thread folds the journal, for about three milliseconds. */
const rowsPerFold = 256;
/** An estimate of what a commit adds to SQLite's log: a copy of each page that it changes. */
const pagesPerCommit = 2;
const rowsPerPage = 8;
const noRequests: FlushedRequests = { rows: [], amendments: [] };

export interface DirectWriterOptions {
  file: string;
  worker: StorageWorker;
  clock: WallClock;
  log: Log;
  /** A commit that takes longer holds up every request. */
  maxCommitMs?: number;
}

export interface DirectWriter {
  add: UsageStore["add"];
  findActive: KeyStore["findActive"];
  close(): void;
}

/**
 * Commits flushes to the journal in the calling thread: the switches to the storage thread and back cost more than the
 * commit. The thread folds the journal into the tables, and commits by itself what the journal does not take, everything
 * while the database is locked or slow, and the first flush of each minute, which prunes. It also runs the checkpoints,
 * which sync files. Keys are found over the same connection, because the commits of any other one empty its page cache.
 */
export function createDirectWriter({ file, worker, clock, log, maxCommitMs = 5 }: DirectWriterOptions): DirectWriter {
  const engine = openDirectWriter(file);
  const append = prepareAppend(engine);
  let pausedUntil = 0;
  // Without jitter: nobody else pauses at the same time.
  const backoff = createBackoff(firstPauseMs, maxPauseMs, () => 1);
  let isCheckpointing = false;
  let pages = 0;
  let unfolded = 0;
  let threadMinute = 0;

  /** @returns whether it is committed; if not, the thread has to do it */
  async function tryToAppend(
    ...[increments, id, responses = [], requests = noRequests, settled = []]: Parameters<UsageStore["add"]>
  ): Promise<boolean> {
    // What a response adds depends on the tables.
    if (id === undefined || responses.length > 0) return false;
    const startedAt = performance.now();
    const rows = increments.length + requests.rows.length;
    if (rows > maxRows || isCheckpointing || startedAt < pausedUntil) return false;
    if (minuteOf(clock()) !== threadMinute) return false;
    try {
      await append(id, { increments, requests, settled })();
    } catch (error) {
      // The flush has a number: the thread does not count it again.
      if (!isBusy(error)) pause();
      return false;
    }
    if (performance.now() - startedAt > maxCommitMs) pause();
    else backoff.reset();
    pages += pagesPerCommit + rows / rowsPerPage;
    unfolded += rows;
    if (unfolded >= rowsPerFold) void fold();
    if (pages >= pagesPerCheckpoint) void checkpoint();
    return true;
  }

  function pause(): void {
    pausedUntil = performance.now() + backoff.next();
  }

  async function checkpoint(): Promise<void> {
    pages = 0;
    isCheckpointing = true;
    await worker.call("checkpoint").catch(() => {});
    isCheckpointing = false;
  }

  /** The thread also does it before it reads or writes counts. */
  async function fold(): Promise<void> {
    unfolded = 0;
    const refused = (await worker.call("fold").catch(() => [])) as RefusedCounts[];
    for (const counts of refused) log.error("Database refuses usage; keeping it in the journal", { ...counts });
    // The thread refuses before it commits, so that the ledger knows.
    if (refused.length > 0) pause();
  }

  return {
    async add(...args) {
      if (await tryToAppend(...args)) return [];
      const minute = minuteOf(clock());
      const isFirst = minute !== threadMinute;
      threadMinute = minute;
      try {
        return (await worker.call("usage.add", ...args)) as Awaited<ReturnType<UsageStore["add"]>>;
      } catch (error) {
        if (toStorageError(error).isRefusal) pause();
        throw error;
      } finally {
        if (isFirst) void fold();
      }
    },
    findActive: prepareFindActiveKey(engine, clock),
    close: engine.close,
  };
}
