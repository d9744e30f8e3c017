import { getTableColumns, sql } from "drizzle-orm";
import type { Log } from "../log/log.ts";
import type { MonotonicClock, WallClock } from "../time/clock.ts";
import type { Engine } from "./engine/engine.ts";
import { prepareRequestLogDeletion } from "./requests/log.ts";
import { type ExpiringRows, expiringRows, type Retention } from "./retention.ts";

// Nothing else deletes by time but a push of GPU samples. A round of maintenance is one turn of each table; a portion is one
// statement that deletes a bounded number of rows, so that neither the lock nor the storage thread is held for long. A table
// with more rows gets its next portion after all others. What is left when the process ends is found by the next round: a
// round's own state is only which tables have had their turn.
//
// A fixed number of rows is no bound: 500 of the request log took 2 ms where their pages were in memory, and 176 where not.

/** What a portion is to take, while SQLite writes nothing else. */
const portionMs = 2;
const minRows = 10;
const maxRows = 500;
/** Between two portions, times what the last one took. */
const pauseFactor = 5;
const minPauseMs = 10;
/** The machine may have been suspended during a portion. */
const maxPauseMs = 5000;
/** Between two rounds, and after a failure. */
const roundPauseMs = 60_000;
/** The first round comes soon, since the retention may be shorter than before. */
const firstPauseMs = 1000;

interface Deletion {
  /** What is older goes in this round. */
  cutoffAt(now: number): Promise<number>;
  /** @returns how many rows it has deleted; as many as `rows` if there may be more */
  deleteBefore(cutoff: number, rows: number): Promise<number>;
}

/**
 * Prepares one portion of maintenance, to be called until it returns false, which ends a round: the next call begins another.
 * @returns whether there may be more to do in this round
 */
export function prepareMaintenance(
  engine: Engine,
  clock: WallClock,
  retention: Retention,
  monotonic: MonotonicClock = () => performance.now(),
): () => Promise<boolean> {
  const deletions: readonly Deletion[] = [
    ...expiringRows.map((rows) => prepareDeletion(engine, rows, retention)),
    { cutoffAt: async (now) => now, deleteBefore: prepareRequestLogDeletion(engine, retention.requestLog) },
  ];
  /** How many rows the next portion deletes: on SQLite, as many as took `portionMs` the last time. */
  const rowsOf = new Map(deletions.map((deletion) => [deletion, engine.hasOneWriter ? minRows : maxRows]));
  /** Those that are to have a portion in this round. */
  let turns: { deletion: Deletion; cutoff?: number }[] = [];

  return async () => {
    let last: { deletion: Deletion; deleted: number; startedAt: number } | undefined;
    const hasMore = await engine.transaction(async () => {
      // Another process is at it; each begins a round of its own a minute after its last.
      if (!(await engine.tryLock("maintenance"))) return false;
      if (turns.length === 0) turns = deletions.map((deletion) => ({ deletion }));
      for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
        const { deletion, cutoff = await deletion.cutoffAt(clock()) } = turn;
        const rows = rowsOf.get(deletion) ?? minRows;
        const startedAt = monotonic();
        const deleted = await deletion.deleteBefore(cutoff, rows);
        if (deleted >= rows) turns.push({ deletion, cutoff });
        if (deleted === 0) continue;
        last = { deletion, deleted, startedAt };
        break;
      }
      return turns.length > 0;
    });
    if (last !== undefined && engine.hasOneWriter) {
      // The commit included.
      const rows = Math.floor((last.deleted * portionMs) / (monotonic() - last.startedAt));
      rowsOf.set(last.deletion, Math.min(Math.max(rows, minRows), maxRows));
    }
    return hasMore;
  };
}

function prepareDeletion(engine: Engine, rows: ExpiringRows, retention: Retention): Deletion {
  const { column, timeOf, keeps, perRound } = rows;
  const table = engine.tables[rows.table];
  const oldest = sql`select min(${getTableColumns(table)[column as never]}) as time from ${table}`;
  return {
    async cutoffAt(now) {
      const cutoff = timeOf(now) - keeps(retention);
      if (perRound === undefined) return cutoff;
      const [first] = await engine.rows<{ time: number | null }>(oldest);
      return Math.min(cutoff, (first?.time ?? cutoff) + perRound);
    },
    deleteBefore: engine.prepareDeleteOldest(table, column),
  };
}

const pauseAfter = (tookMs: number): number => Math.min(Math.max(minPauseMs, tookMs * pauseFactor), maxPauseMs);

/** Runs portions of maintenance: a round a minute, whether or not the server is used. @returns stops it */
export function startMaintenance({
  portion,
  log,
  monotonic = () => performance.now(),
}: {
  /** @returns whether there is more to do */
  portion: () => Promise<boolean>;
  log: Log;
  monotonic?: MonotonicClock;
}): () => void {
  let stopped = false;
  let timer = setTimeout(() => void run(), firstPauseMs);
  timer.unref();

  async function run(): Promise<void> {
    const startedAt = monotonic();
    const hasMore = await portion().catch((error: unknown) => {
      // A database that fails is reported by those who need it.
      log.debug("Old rows not deleted", { error: String(error) });
      return false;
    });
    if (stopped) return;
    const pauseMs = hasMore ? pauseAfter(monotonic() - startedAt) : roundPauseMs;
    timer = setTimeout(() => void run(), pauseMs);
    timer.unref();
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
