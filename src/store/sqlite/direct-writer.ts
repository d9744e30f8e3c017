import { createBackoff } from "../../time/backoff.ts";
import type { WallClock } from "../../time/clock.ts";
import { minuteOf } from "../../time/seoul.ts";
import { prepareFindActiveKey } from "../keys.ts";
import type { KeyStore } from "../key-store.ts";
import type { UsageStore } from "../usage-store.ts";
import { prepareAddUsage } from "../usage.ts";
import { isBusy, openDirectWriter, pagesPerCheckpoint } from "./engine.ts";
import type { StorageWorker } from "./worker-client.ts";

/** How long the storage thread commits everything after a commit here that was slow or failed; doubles each time. */
export const firstPauseMs = 250;
const maxPauseMs = 60_000;
/** More rows take longer than the switch to the thread. */
const maxRows = 64;
/** A flush of one key writes eight pages to the log, and each further row about three. */
const [pagesPerCommit, pagesPerRow] = [5, 3];

export interface DirectWriterOptions {
  file: string;
  worker: StorageWorker;
  clock: WallClock;
  /** A commit that takes longer holds up every request. */
  maxCommitMs?: number;
}

export interface DirectWriter {
  add: UsageStore["add"];
  findActive: KeyStore["findActive"];
  close(): void;
}

/**
 * Commits small flushes in the calling thread: the switches to the storage thread and back cost more than the commit. The
 * thread commits large flushes, everything while the database is locked or slow, and the first flush of each minute, which
 * prunes; it also runs the checkpoints, which sync files. Keys are found over the same connection, because the commits of
 * any other one empty its page cache.
 */
export function createDirectWriter({ file, worker, clock, maxCommitMs = 5 }: DirectWriterOptions): DirectWriter {
  const engine = openDirectWriter(file);
  const addHere = prepareAddUsage(engine, clock);
  let pausedUntil = 0;
  // Without jitter: nobody else pauses at the same time.
  const backoff = createBackoff(firstPauseMs, maxPauseMs, () => 1);
  let isCheckpointing = false;
  let pages = 0;
  let threadMinute = 0;

  /** @returns undefined if the thread has to do it */
  async function tryToAdd(...[increments, flush, responses = [], requests, settled]: Parameters<UsageStore["add"]>) {
    const startedAt = performance.now();
    const rows = increments.length + responses.length + (requests?.rows.length ?? 0);
    if (rows > maxRows || isCheckpointing || startedAt < pausedUntil) return undefined;
    if (minuteOf(clock()) !== threadMinute) return undefined;
    try {
      const added = await addHere(increments, flush, responses, requests, settled);
      pages += pagesPerCommit + rows * pagesPerRow;
      if (performance.now() - startedAt > maxCommitMs) pause();
      else backoff.reset();
      if (pages >= pagesPerCheckpoint) void checkpoint();
      return { added };
    } catch (error) {
      // The flush has a number: the thread does not count it again.
      if (!isBusy(error)) pause();
      return undefined;
    }
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

  return {
    async add(...args) {
      const here = await tryToAdd(...args);
      if (here !== undefined) return here.added;
      threadMinute = minuteOf(clock());
      return (await worker.call("usage.add", ...args)) as Awaited<ReturnType<UsageStore["add"]>>;
    },
    findActive: prepareFindActiveKey(engine, clock),
    close: engine.close,
  };
}
