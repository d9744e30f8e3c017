// Commits flushes and leases in the calling thread, because the switches to the storage thread and back cost more than
// the commit. Both threads write the same database file, each over a connection of its own:
//
//   flush -> staged (this thread) -> tables of counts (the storage thread folds)
//   lease -> tables of limits (this thread)
//
// Who commits: this thread, but not while it pauses (`pausedUntil`), or if there are more rows than a request should wait for;
// nor what depends on the tables of counts, nor a flush that may be committed already, nor any flush after a fold that failed.
// The storage thread then does it. This thread waits for no lock, but for a fold, deletion or checkpoint's end that is in the way.
//
// Invariants. A flush has a number, and counts once, whoever commits it and however often: the tables hold the last number of
// each ledger, and staged flushes up to it are dropped by the fold. Commits here run one after the other.
//
// After `kill -9`: what was committed is in the write-ahead log, whoever wrote it; the next process folds the rest of the
// staged flushes before it reads counts. A flush without a reply is either there as a whole or not at all.

import type { Log } from "../../log/log.ts";
import type { MonotonicClock, WallClock } from "../../time/clock.ts";
import { createBackoff } from "../../time/wait.ts";
import { minuteOf } from "../../time/seoul.ts";
import { prepareFindActiveKey } from "../keys/keys.ts";
import type { FlushedRequests } from "../requests/contract.ts";
import type { CommittedFlush, FlushId, UsageStore } from "../usage/contract.ts";
import { logRefused, type RefusedUsage } from "../usage/batch.ts";
import type { Lease, LeaseBatch } from "../limits/contract.ts";
import { prepareTake } from "../limits/take-leases.ts";
import { isBusy, openDirectWriter } from "./engine.ts";
import { prepareStage } from "./staged-flushes.ts";
import type { Folded, Maintained } from "./worker.ts";
import type { StorageWorker } from "./worker-client.ts";

/** How long the storage thread commits everything after commits here that were slow or failed; doubles each time. */
export const firstPauseMs = 250;
const maxPauseMs = 60_000;
/** More rows take longer than a request should hold up the others. */
const maxRows = 256;
/** After so many rows the thread folds the staged flushes, mostly in one transaction, and so after half as many flushes. */
const rowsPerFold = 512;
const leastRows = 2;
const noRequests: FlushedRequests = { rows: [], amendments: [] };
const nothingFolded: Folded = { refused: [], hasFailed: false, isCheckpointDue: false };

const createState = () => ({
  /** Resolves after the latest commit here: no other statement may run between those of a transaction. */
  latestCommit: Promise.resolve() as Promise<unknown>,
  /** Until then, on the monotonic clock, the thread commits everything. */
  pausedUntil: 0,
  /** A single one is rather of a thread that got no core than of a slow disk. */
  slowCommitsInARow: 0,
  /** The latest flush, whoever commits it. */
  lastFlush: undefined as FlushId | undefined,
  /** Rows that were staged since the latest fold began. */
  unfoldedRows: 0,
  /** When that fold began. */
  foldedMinute: 0,
  /** Pending while the thread folds the staged flushes. */
  folding: undefined as Promise<void> | undefined,
  /** Pending while the thread deletes a portion of old rows. */
  deleting: undefined as Promise<unknown> | undefined,
  /** The latest fold failed: the thread gets all flushes until it has written one, so that the ledger knows. */
  hasFoldFailed: false,
  /** By folds since the latest flush. */
  refused: [] as RefusedUsage[],
  /** Pending while the thread ends a checkpoint: a commit would keep the log from beginning anew. */
  ending: undefined as Promise<unknown> | undefined,
});
type State = ReturnType<typeof createState>;

type Add = Parameters<UsageStore["add"]>;

/** Keys are found over the same connection, because the commits of any other one empty its page cache. */
export function createDirectWriter(options: {
  file: string;
  worker: StorageWorker;
  clock: WallClock;
  monotonic?: MonotonicClock;
  log: Log;
  /** Commits that take longer hold up every request. */
  maxCommitMs?: number;
}) {
  const { file, worker, clock, monotonic = performance.now.bind(performance), log, maxCommitMs = 5 } = options;
  const engine = openDirectWriter(file);
  const stage = prepareStage(engine);
  const take = prepareTake(engine, clock);
  const state = createState();
  const tryToCommit = createCommitting(state, monotonic, maxCommitMs);
  const checkpoint = createCheckpoint(state, worker);
  const startFold = createFolding(state, worker, checkpoint);

  return {
    async add(...args: Add): Promise<CommittedFlush> {
      const [increments, id, responses = [], requests = noRequests, settled = []] = args;
      const last = state.lastFlush;
      state.lastFlush = id ?? last;
      // The thread knows which flushes are committed.
      const isRepeated = id?.ledger === last?.ledger && (id?.number ?? 0) <= (last?.number ?? 0);
      // What a response adds depends on the tables.
      const mayStage = id !== undefined && !isRepeated && responses.length === 0 && !state.hasFoldFailed;
      const rows = requests.rows.length + requests.amendments.length;
      const ofAll = rows + increments.length + settled.length;
      const isStaged = mayStage && (await tryToCommit(ofAll, stage, id, { increments, requests, settled }));
      if (!isStaged) {
        const { added = [], refused = [] } = (await worker.call("usage.add", ...args)) as CommittedFlush;
        state.hasFoldFailed = false;
        return { added, refused: [...state.refused.splice(0), ...refused] };
      }
      // Each table of counts has a row for each key, however many of its flushes are folded at once.
      state.unfoldedRows += Math.max(leastRows, increments.length, rows);
      // At least once a minute, so that what the database refuses is noticed.
      const minute = minuteOf(clock());
      if (state.unfoldedRows >= rowsPerFold || state.foldedMinute !== minute) startFold(minute);
      return { added: [], refused: state.refused.splice(0) };
    },
    async take(batch: LeaseBatch): Promise<Lease[]> {
      let rows = batch.requests.length;
      for (const { requests } of batch.requests) rows += requests.length;
      const committed = await tryToCommit(rows, take, batch);
      return committed?.result ?? ((await worker.call("limits.take", batch)) as Lease[]);
    },
    findActive: prepareFindActiveKey(engine, clock),
    /** A portion of maintenance, and the checkpoint that is due after it. */
    async maintain(): Promise<boolean> {
      state.deleting = worker.call("maintain").finally(() => (state.deleting = undefined));
      const { hasMore, isCheckpointDue } = (await state.deleting) as Maintained;
      if (isCheckpointDue) await checkpoint();
      return hasMore;
    },
    /** Folds what is left, so that nothing is refused unseen. */
    async close(): Promise<void> {
      engine.close();
      const { refused } = (await worker.call("fold")) as Folded;
      logRefused(log, [...state.refused, ...refused]);
    },
  };
}

/** @returns undefined if it is not committed: the thread has to do it */
type TryToCommit = <Args extends unknown[], T>(
  rows: number,
  work: (...args: Args) => Promise<T>,
  ...args: Args
) => Promise<{ result: T } | undefined>;

/** Commits in this thread, one transaction at a time, and pauses after those that are slow or fail. */
function createCommitting(state: State, monotonic: MonotonicClock, maxCommitMs: number): TryToCommit {
  // Without jitter: no other process pauses at the same time.
  const backoff = createBackoff(firstPauseMs, maxPauseMs, () => 1);

  function pause(): void {
    state.pausedUntil = monotonic() + backoff.next();
  }

  async function commit<Args extends unknown[], T>(
    earlier: Promise<unknown> | undefined,
    rows: number,
    work: (...args: Args) => Promise<T>,
    args: Args,
  ): Promise<{ result: T } | undefined> {
    await earlier;
    if (state.ending !== undefined) await state.ending;
    const startedAt = monotonic();
    if (rows > maxRows || startedAt < state.pausedUntil) return undefined;
    try {
      const result = await work(...args);
      state.slowCommitsInARow = monotonic() - startedAt > maxCommitMs ? state.slowCommitsInARow + 1 : 0;
      // While no commit was ever slow, there is nothing to reset.
      if (state.slowCommitsInARow === 0 && state.pausedUntil > 0) backoff.reset();
      if (state.slowCommitsInARow > 1) pause();
      return { result };
    } catch (error) {
      // Rolled back; and if not, a flush has a number: the thread does not count it again.
      if (!isBusy(error)) pause();
      if (!isBusy(error) || (state.folding ?? state.deleting) === undefined) return undefined;
    }
    await (state.folding ?? state.deleting);
    return commit(undefined, rows, work, args);
  }

  return (rows, work, ...args) => {
    const done = commit(state.latestCommit, rows, work, args);
    state.latestCommit = done.catch(() => {});
    return done;
  };
}

/** @returns runs a checkpoint, unless one runs */
function createCheckpoint(state: State, worker: StorageWorker): () => Promise<void> {
  /** Commits go on while most of the log is copied, and wait while the thread copies the rest, and begins it anew. */
  let isRunning = false;
  return async () => {
    if (isRunning) return;
    isRunning = true;
    try {
      await worker.call("copyLog");
      state.ending = worker.call("checkpoint").catch(() => {});
      await state.ending;
    } catch {
      // It is due again after the next fold.
    } finally {
      state.ending = undefined;
      isRunning = false;
    }
  };
}

/** The thread also folds before it reads or writes counts. @returns starts a fold, and the checkpoint that is due after it */
function createFolding(state: State, worker: StorageWorker, checkpoint: () => Promise<void>): (minute: number) => void {
  async function fold(): Promise<void> {
    const { refused, hasFailed, isCheckpointDue } = (await worker.call("fold").catch(() => nothingFolded)) as Folded;
    if (hasFailed) state.hasFoldFailed = true;
    if (isCheckpointDue) void checkpoint();
    state.refused.push(...refused);
  }

  return (minute) => {
    state.unfoldedRows = 0;
    state.foldedMinute = minute;
    const done = fold().finally(() => {
      if (state.folding === done) state.folding = undefined;
    });
    state.folding = done;
  };
}
