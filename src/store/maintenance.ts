import { getTableColumns, sql } from "drizzle-orm";
import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import type { Engine } from "./engine/engine.ts";
import { prepareRequestLogDeletion } from "./requests/log.ts";
import { type ExpiringRows, expiringRows, type Retention } from "./retention.ts";

// Nothing else deletes by time but a push of GPU samples. A round of maintenance is one turn of each table; a portion is one
// statement that deletes a bounded number of rows, so that neither the lock nor the storage thread is held for long. A table
// with more rows gets its next portion after all others. What is left when the process ends is found by the next round: a
// round's own state is only which tables have had their turn.

/** A portion takes up to two milliseconds, in which nothing else is written. */
const rowsPerPortion = 500;
/** Between two portions: up to 5000 rows a second are deleted, more than a process logs. */
const portionPauseMs = 100;
/** Between two rounds, and after a failure. */
const roundPauseMs = 60_000;
/** The first round comes soon, since the retention may be shorter than before. */
const firstPauseMs = 1000;

interface Deletion {
  /** What is older goes in this round. */
  cutoffAt(now: number): Promise<number>;
  /** @returns how many rows it has deleted; as many as `rowsPerPortion` if there may be more */
  deleteBefore(cutoff: number): Promise<number>;
}

/**
 * Prepares one portion of maintenance, to be called until it returns false, which ends a round: the next call begins another.
 * @returns whether there may be more to do in this round
 */
export function prepareMaintenance(engine: Engine, clock: WallClock, retention: Retention): () => Promise<boolean> {
  const deleteRequests = prepareRequestLogDeletion(engine, retention.requestLog);
  const deletions: readonly Deletion[] = [
    ...expiringRows.map((rows) => prepareDeletion(engine, rows, retention)),
    { cutoffAt: async (now) => now, deleteBefore: (now) => deleteRequests(now, rowsPerPortion) },
  ];
  /** Those that are to have a portion in this round. */
  let turns: { deletion: Deletion; cutoff?: number }[] = [];

  return () =>
    engine.transaction(async () => {
      // Another process is at it; each begins a round of its own a minute after its last.
      if (!(await engine.tryLock("maintenance"))) return false;
      if (turns.length === 0) turns = deletions.map((deletion) => ({ deletion }));
      for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
        const { deletion, cutoff = await deletion.cutoffAt(clock()) } = turn;
        const deleted = await deletion.deleteBefore(cutoff);
        if (deleted >= rowsPerPortion) turns.push({ deletion, cutoff });
        if (deleted > 0) break;
      }
      return turns.length > 0;
    });
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
    deleteBefore: engine.prepareDeleteOldest(table, column, rowsPerPortion),
  };
}

/** Runs portions of maintenance: a round a minute, whether or not the server is used. @returns stops it */
export function startMaintenance({
  portion,
  log,
}: {
  /** @returns whether there is more to do */
  portion: () => Promise<boolean>;
  log: Log;
}): () => void {
  let stopped = false;
  let timer = setTimeout(() => void run(), firstPauseMs);
  timer.unref();

  async function run(): Promise<void> {
    const hasMore = await portion().catch((error: unknown) => {
      // A database that fails is reported by those who need it.
      log.debug("Old rows not deleted", { error: String(error) });
      return false;
    });
    if (stopped) return;
    timer = setTimeout(() => void run(), hasMore ? portionPauseMs : roundPauseMs);
    timer.unref();
  }

  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
