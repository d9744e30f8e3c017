// A staged flush is committed, and not yet added to the tables of counts and the request log: to stage one writes two pages, to
// write it into the tables a dozen. The storage thread folds them, which adds up to 256 to the tables and removes them in one
// transaction, before anything reads or writes counts.
//
// What the tables refuse is left out of the fold, key by key, and reported.
//
// Invariants. A flush counts once: the fold records the last number of each ledger in the same transaction, and skips rows up
// to it. The thread folds before it writes a flush by itself, since that one's number would hide those that wait here. What
// limits are compared with (days, seconds) is written when the flush is staged, and not again by the fold (`isSettled`).
//
// After `kill -9`: a row is in the file as a whole or not at all, and so is a fold. The next process to open the database folds
// what is left.

import { asc, lte, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import type { Engine } from "../engine/engine.ts";
import { prepareSettling } from "../limits/take-leases.ts";
import { toStorageError } from "../storage-error.ts";
import { amongSubjects, type FlushedUsage, mergeStaged, type RefusedUsage, type StagedFlush } from "../usage/batch.ts";
import type { FlushId } from "../usage/contract.ts";
import { createUsageWriter, prepareAddDays, type UsageWriter } from "../usage/writer.ts";
import { integer, sqliteTable, text } from "drizzle-orm/sqlite-core";

/** Flushes of usage that are committed, and not yet added to the tables of counts. Nothing to do with SQLite's own journal. */
export const stagedFlushes = sqliteTable("staged_flushes", {
  id: integer().primaryKey(),
  ledger: text().notNull(),
  flush: integer().notNull(),
  /** JSON: the flush's increments, and its part of the request log or null. */
  usage: text().notNull(),
});

/** Flushes in one transaction, which takes 3 ms: more hold the write lock for longer than a request should wait. */
const maxFolded = 256;

/**
 * Appends flushes. What the next admission of a key with limits is compared with is written at once, so that it need not
 * wait until they are folded.
 */
export function prepareStage(engine: Engine): (id: FlushId, flush: StagedFlush) => Promise<void> {
  const insert = engine.prepareInsert(stagedFlushes, ["ledger", "flush", "usage"]);
  const settle = prepareSettling(engine);
  const addDays = prepareAddDays(engine);
  return async ({ ledger, number }, flush) => {
    const { settled, increments } = flush;
    if (settled.length === 0) {
      await insert([[ledger, number, JSON.stringify(flush)]])();
      return;
    }
    const isSettled = settled.flatMap(({ subjects }) => subjects);
    const append = insert([[ledger, number, JSON.stringify({ ...flush, settled: [], isSettled })]]);
    const counted = [...settle(settled, increments), addDays(increments, amongSubjects(isSettled))];
    await engine.transaction(() => engine.pipeline([append, ...counted]));
  };
}

export function createFold(engine: Engine, clock: WallClock) {
  const { findFirst, findRows, remove } = prepareStatements(engine);
  const writer = createUsageWriter(engine);
  const refused: RefusedUsage[] = [];

  /**
   * @param mayRefuse key by key, so that what the database refuses does not keep it from the others
   * @returns whether there may be more
   */
  async function foldSome(mayRefuse: boolean): Promise<boolean> {
    const committed = await writer.transaction(async () => {
      const rows = await findRows.execute({ limit: maxFolded });
      const last = rows.at(-1);
      if (last === undefined) return { rows, leftOut: [] };
      const { flush, missingInDays } = mergeStaged((await recordNew(writer, rows, clock())).map(flushOf));
      const write = (part: FlushedUsage): Promise<void> => writer.write({ ...part, missingInDays });
      const leftOut = mayRefuse ? await writer.writeByKey(flush, write) : [];
      if (!mayRefuse) await write(flush);
      await remove.execute({ last: last.id });
      return { rows, leftOut };
    });
    // Not before the commit: what fails to commit comes again.
    refused.push(...committed.leftOut);
    return committed.rows.length === maxFolded;
  }

  return {
    /**
     * Adds the staged flushes to the tables, each flush once.
     * @throws if the database cannot be written
     */
    async fold(): Promise<void> {
      // The write lock is taken only if there is something to fold.
      let hasMore = findFirst.get({}) !== undefined;
      let mayRefuse = false;
      while (hasMore) {
        try {
          hasMore = await foldSome(mayRefuse);
        } catch (error) {
          if (mayRefuse || !toStorageError(error).isRefusal) throw error;
          mayRefuse = true;
        }
      }
    },
    /** What the database has refused since the last call. */
    takeRefused: (): RefusedUsage[] => refused.splice(0),
  };
}

/**
 * Records the last flush of each ledger, within a transaction. A commit may succeed unnoticed, so that its flush comes again.
 * @returns the flushes that the tables do not hold yet
 */
async function recordNew(writer: UsageWriter, rows: readonly Row[], now: number): Promise<Row[]> {
  const latest = new Map<string, number>();
  const found: Row[] = [];
  for (const row of rows) {
    const { ledger, flush } = row;
    const known = latest.get(ledger) ?? (await writer.findLastFlush(ledger));
    if (flush > known) found.push(row);
    latest.set(ledger, Math.max(known, flush));
  }
  for (const [ledger, flush] of latest) await writer.recordFlush({ ledger, number: flush }, now);
  return found;
}

type Row = typeof stagedFlushes.$inferSelect;

const flushOf = ({ usage }: Row): StagedFlush => JSON.parse(usage) as StagedFlush;

function prepareStatements({ db }: Engine) {
  const { id } = stagedFlushes;
  return {
    findFirst: db.select({ id }).from(stagedFlushes).limit(1).prepare(),
    findRows: db.select().from(stagedFlushes).orderBy(asc(id)).limit(sql.placeholder("limit")).prepare(),
    remove: db
      .delete(stagedFlushes)
      .where(lte(id, sql.placeholder("last")))
      .prepare(),
  };
}
