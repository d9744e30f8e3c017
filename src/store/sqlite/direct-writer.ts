import type { Log } from "../../log/log.ts";
import type { WallClock } from "../../time/clock.ts";
import { createBackoff } from "../../time/backoff.ts";
import { minuteOf } from "../../time/seoul.ts";
import { prepareFindActiveKey } from "../keys/keys.ts";
import type { KeyStore } from "../keys/contract.ts";
import type { FlushedRequests } from "../requests/contract.ts";
import type { FlushId, UsageStore } from "../usage/contract.ts";
import { prepareAdmit } from "../limits/admission.ts";
import type { AdmissionResult, LimitStore } from "../limits/contract.ts";
import { isBusy, openDirectWriter } from "./engine.ts";
import { toStorageError } from "../storage-error.ts";
import { prepareSettledAppend } from "./staged-flushes.ts";
import type { Folded } from "./worker.ts";
import type { StorageWorker } from "./worker-client.ts";

/** How long the storage thread commits everything after commits here that were slow or failed; doubles each time. */
export const firstPauseMs = 250;
const maxPauseMs = 60_000;
/** More rows take longer than a request should hold up the others. */
const maxRows = 256;
/** After so many rows the thread folds the journal, mostly in one transaction. */
const rowsPerFold = 512;
const noRequests: FlushedRequests = { rows: [], amendments: [] };
const nothingFolded: Folded = { refused: [], isCheckpointDue: false };

export interface DirectWriterOptions {
  file: string;
  worker: StorageWorker;
  clock: WallClock;
  log: Log;
  /** Commits that take longer hold up every request. */
  maxCommitMs?: number;
}

export interface DirectWriter {
  add: UsageStore["add"];
  admit: LimitStore["admit"];
  findActive: KeyStore["findActive"];
  close(): void;
}

/**
 * Commits admissions, and flushes to the journal, in the calling thread: the switches to the storage thread and back cost
 * more than the commit. The thread folds the journal into the tables, and commits by itself what the journal does not take,
 * everything while the database is locked or slow, and the first flush and admissions of each minute, which prune. It also
 * runs the checkpoints, which sync files. Keys are found over the same connection, because the commits of any other one
 * empty its page cache.
 */
export function createDirectWriter({ file, worker, clock, log, maxCommitMs = 5 }: DirectWriterOptions): DirectWriter {
  const engine = openDirectWriter(file);
  const append = prepareSettledAppend(engine);
  const admit = prepareAdmit(engine, clock);
  let pausedUntil = 0;
  // Without jitter: nobody else pauses at the same time.
  const backoff = createBackoff(firstPauseMs, maxPauseMs, () => 1);
  /** A single one is rather of a thread that got no core than of a slow disk. */
  let slowInARow = 0;
  let checkpointing: "copying" | "ending" | undefined;
  let unfolded = 0;
  const threadMinutes = { "usage.add": 0, "limits.admit": 0 };
  /** Pending while the thread folds the journal. */
  let folding: Promise<void> | undefined;
  let lastFlush: FlushId | undefined;
  let latest: Promise<unknown> = Promise.resolve();

  /** One at a time: no other statement may run between those of a transaction. */
  function exclusively<T>(work: () => Promise<T>): Promise<T> {
    const done = latest.then(work);
    latest = done.catch(() => {});
    return done;
  }

  /** @returns undefined if it is not committed: the thread has to do it */
  async function tryToCommit<T>(rows: number, work: () => Promise<T>): Promise<{ result: T } | undefined> {
    const startedAt = performance.now();
    if (rows > maxRows || checkpointing === "ending" || startedAt < pausedUntil) return undefined;
    try {
      const result = await work();
      slowInARow = performance.now() - startedAt > maxCommitMs ? slowInARow + 1 : 0;
      if (slowInARow === 0) backoff.reset();
      if (slowInARow > 1) pause();
      return { result };
    } catch (error) {
      // Rolled back; and if not, a flush has a number: the thread does not count it again.
      if (!isBusy(error)) pause();
      if (!isBusy(error) || folding === undefined) return undefined;
    }
    // The fold, which has the lock, ends sooner than the thread would commit the same.
    await folding;
    return tryToCommit(rows, work);
  }

  async function tryToAppend(
    ...[increments, id, responses = [], requests = noRequests, settled = []]: Parameters<UsageStore["add"]>
  ): Promise<boolean> {
    // What a response adds depends on the tables.
    if (id === undefined || responses.length > 0) return false;
    const rows = increments.length + requests.rows.length;
    const committed = await exclusively(() =>
      tryToCommit(rows + settled.length, () => append(id, { increments, requests, settled })),
    );
    if (committed === undefined) return false;
    unfolded += rows;
    if (unfolded >= rowsPerFold) startFold();
    return true;
  }

  /** The thread knows which flushes are committed. */
  function isRepeated(id: FlushId | undefined): boolean {
    if (id === undefined) return false;
    const before = lastFlush?.ledger === id.ledger ? lastFlush.number : 0;
    lastFlush = id;
    return id.number <= before;
  }

  function pause(): void {
    pausedUntil = performance.now() + backoff.next();
  }

  /** Commits go on while most of the log is copied: the thread commits only what comes during the last millisecond. */
  async function checkpoint(): Promise<void> {
    checkpointing = "copying";
    try {
      await worker.call("copyLog");
      checkpointing = "ending";
      await worker.call("checkpoint");
    } catch {
      // It is due again after the next fold.
    } finally {
      checkpointing = undefined;
    }
  }

  /** The thread also does it before it reads or writes counts. */
  function startFold(): void {
    unfolded = 0;
    const done = fold().finally(() => {
      if (folding === done) folding = undefined;
    });
    folding = done;
  }

  async function fold(): Promise<void> {
    const { refused, isCheckpointDue } = (await worker.call("fold").catch(() => nothingFolded)) as Folded;
    if (isCheckpointDue && checkpointing === undefined) void checkpoint();
    for (const counts of refused) log.error("Database refuses usage; keeping it in the journal", { ...counts });
    // The thread refuses before it commits, so that the ledger knows.
    if (refused.length > 0) pause();
  }

  /** @returns whether this is the minute's first call of the method */
  function isFirstOfMinute(method: keyof typeof threadMinutes): boolean {
    const minute = minuteOf(clock());
    if (threadMinutes[method] === minute) return false;
    threadMinutes[method] = minute;
    return true;
  }

  return {
    async add(...args) {
      const isFirst = isFirstOfMinute("usage.add");
      const isForThread = isRepeated(args[1]) || isFirst;
      if (!isForThread && (await tryToAppend(...args))) return [];
      try {
        return (await worker.call("usage.add", ...args)) as Awaited<ReturnType<UsageStore["add"]>>;
      } catch (error) {
        if (toStorageError(error).isRefusal) pause();
        throw error;
      } finally {
        if (isFirst) startFold();
      }
    },
    async admit(batch) {
      if (!isFirstOfMinute("limits.admit")) {
        const rows = batch.requests.length + batch.ended.length + (batch.resized?.length ?? 0);
        const committed = await exclusively(() => tryToCommit(rows, () => admit(batch)));
        if (committed !== undefined) return committed.result;
      }
      return (await worker.call("limits.admit", batch)) as AdmissionResult[];
    },
    findActive: prepareFindActiveKey(engine, clock),
    close: engine.close,
  };
}
