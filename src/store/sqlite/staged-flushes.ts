// A staged flush is committed, and not yet added to the tables of counts and the request log: to stage one writes two pages, to
// write it into the tables a dozen. The storage thread folds them, which adds up to 256 to the tables and removes them in one
// transaction, before anything reads or writes counts.
//
// A flush is staged -> folded, or refused by the tables -> split into a row for each key and one for the rest -> those
// that are accepted are folded, the others stay and are tried again after a restart.
//
// Invariants. A flush counts once: the fold records the last number of each ledger in the same transaction, and skips rows up
// to it. The thread folds before it writes a flush by itself, since that one's number would hide those that wait here. What
// limits are compared with (days, seconds) is written when the flush is staged, and not again by the fold (`isSettled`).
//
// After `kill -9`: a row is in the file as a whole or not at all, and so is a fold. The next process to open the database folds
// what is left.

import { randomUUID } from "node:crypto";
import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import type { Engine, Statement } from "../engine/engine.ts";
import { prepareSettling } from "../limits/take-leases.ts";
import { keyIdOf } from "../requests/row.ts";
import { toStorageError } from "../storage-error.ts";
import type { FlushedUsage } from "../usage/batch.ts";
import type { FlushId } from "../usage/contract.ts";
import { createUsageWriter, prepareAddDays, type UsageWriter } from "../usage/writer.ts";
import { stagedFlushes } from "./staged-flushes-table.ts";
import type { KeyId } from "../../domain/keys.ts";
import { type UsageSum, addSums, noSum } from "../../domain/usage.ts";

interface StagedFlush extends Required<Omit<FlushedUsage, "responses">> {
  /** Whether what limits are compared with had its tokens when it was appended, the sums of days included. */
  isSettled?: boolean;
}

/** Flushes in one transaction, which takes 3 ms: more hold the write lock for longer than a request should wait. */
const maxFolded = 256;

/** Begins the ledgers of what was refused with others, and is tried by itself. */
const partLedger = "part";

/** Appends flushes, each of which writes two pages where the tables of counts and the request log need a dozen. */
function prepareAppend(engine: Engine): (id: FlushId, flush: StagedFlush) => Statement {
  const insert = engine.prepareInsert(stagedFlushes, ["ledger", "flush", "usage"]);
  return ({ ledger, number }, flush) => insert([[ledger, number, JSON.stringify(flush)]]);
}

/**
 * Appends flushes. What the next admission of a key with limits is compared with is written at once, so that it need not
 * wait until they are folded.
 */
export function prepareStage(engine: Engine): (id: FlushId, flush: StagedFlush) => Promise<void> {
  const append = prepareAppend(engine);
  const settle = prepareSettling(engine);
  const addDays = prepareAddDays(engine);
  return async (id, flush) => {
    const { settled, increments } = flush;
    if (settled.length === 0) await append(id, flush)();
    else {
      const counted = [...settle(settled, increments), addDays(increments)];
      await engine.transaction(() =>
        engine.pipeline([append(id, { ...flush, settled: [], isSettled: true }), ...counted]),
      );
    }
  };
}

/** The counts of one key in one flush. */
export interface RefusedCounts extends UsageSum {
  keyId: KeyId;
  reason: string;
}

export interface Fold {
  /**
   * Adds the staged flushes to the tables, each flush once.
   * @throws if the database cannot be written
   */
  fold(): Promise<void>;
  /** What the database has refused since the last call. It stays staged, and is tried again after a restart. */
  takeRefused(): RefusedCounts[];
}

export function createFold(engine: Engine, clock: WallClock): Fold {
  const { findFirst, findRows, remove } = prepareStatements(engine);
  const writer = createUsageWriter(engine);
  const split = prepareSplit(engine);
  /**
   * The ledgers of what was refused, as JSON. Not their ids: these come again once another process, started later, has folded
   * all rows.
   */
  let passedOver = "[]";
  const refused: RefusedCounts[] = [];

  /** @returns whether there may be more */
  function foldSome(limit: number): Promise<boolean> {
    return writer.transaction(async () => {
      const rows = await findRows.execute({ passedOver, limit });
      const last = rows.at(-1);
      if (last === undefined) return false;
      const flushes = (await recordNew(writer, rows, clock())).map(flushOf);
      const flush = merge(flushes);
      const missingInDays = merge(flushes.filter(({ isSettled }) => isSettled !== true)).increments;
      await writer.write({ ...flush, missingInDays });
      await remove.execute({ passedOver, last: last.id });
      return rows.length === limit;
    });
  }

  /** One at a time, so that what the database refuses does not keep it from the others. */
  async function foldEach(): Promise<void> {
    for (;;) {
      const [row] = await findRows.execute({ passedOver, limit: 1 });
      if (row === undefined) return;
      try {
        await foldSome(1);
      } catch (error) {
        const { isRefusal, message } = toStorageError(error);
        if (!isRefusal) throw error;
        if (row.ledger.startsWith(partLedger)) keepRefused(row, message);
        else await writer.transaction(() => split(row.id));
      }
    }
  }

  function keepRefused(row: Row, reason: string): void {
    const { increments } = flushOf(row);
    passedOver = JSON.stringify([...(JSON.parse(passedOver) as string[]), row.ledger]);
    refused.push({ ...increments.reduce(addSums, noSum), keyId: increments[0]?.keyId ?? 0, reason });
  }

  return {
    async fold() {
      try {
        // The write lock is taken only if there is something to fold.
        let hasMore = findFirst.get({ passedOver }) !== undefined;
        while (hasMore) hasMore = await foldSome(maxFolded);
      } catch (error) {
        if (!toStorageError(error).isRefusal) throw error;
        await foldEach();
      }
    },
    takeRefused: () => refused.splice(0),
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

/** Replaces a row by one for each key and one for the rest, so that only the counts that are refused stay. */
function prepareSplit(engine: Engine): (id: number) => Promise<void> {
  const { findOne, removeOne } = prepareStatements(engine);
  const append = prepareAppend(engine);
  return async (id) => {
    const [row] = await findOne.execute({ id });
    // Another process may have done it.
    if (row === undefined) return;
    for (const part of partsOf(flushOf(row))) {
      // A ledger of its own: flushes after this one may be recorded, and it would pass for one that was counted.
      await append({ ledger: `${partLedger} ${randomUUID()}`, number: 1 }, part)();
    }
    await removeOne.execute({ id });
  };
}

type Row = typeof stagedFlushes.$inferSelect;

const flushOf = ({ usage }: Row): StagedFlush => JSON.parse(usage) as StagedFlush;

const merge = (flushes: readonly StagedFlush[]): StagedFlush => ({
  increments: flushes.flatMap(({ increments }) => increments),
  requests: {
    rows: flushes.flatMap(({ requests }) => requests.rows),
    amendments: flushes.flatMap(({ requests }) => requests.amendments),
  },
  settled: flushes.flatMap(({ settled }) => settled),
});

function partsOf({ increments, requests, settled, isSettled = false }: StagedFlush): StagedFlush[] {
  const keys = new Set(increments.map(({ keyId }) => keyId));
  const isOfOthers = (keyId: unknown): boolean => !keys.has(keyId as KeyId);
  const select = (isSelected: (keyId: unknown) => boolean): StagedFlush => ({
    increments: increments.filter(({ keyId }) => isSelected(keyId)),
    requests: {
      rows: requests.rows.filter((row) => isSelected(keyIdOf(row))),
      amendments: requests.amendments.filter(({ keyId }) => isSelected(keyId)),
    },
    settled: [],
    isSettled,
  });
  return [{ ...select(isOfOthers), settled }, ...[...keys].map((key) => select((keyId) => keyId === key))];
}

// oxlint-disable-next-line typescript/explicit-function-return-type -- Drizzle's types of prepared statements
function prepareStatements({ db, jsonRows }: Engine) {
  const { id, ledger } = stagedFlushes;
  const isMeant = sql`${ledger} not in (select value from ${jsonRows(sql.placeholder("passedOver"))})`;
  const isOne = eq(id, sql.placeholder("id"));
  return {
    findFirst: db.select({ id }).from(stagedFlushes).where(isMeant).limit(1).prepare(),
    findRows: db.select().from(stagedFlushes).where(isMeant).orderBy(asc(id)).limit(sql.placeholder("limit")).prepare(),
    remove: db
      .delete(stagedFlushes)
      .where(and(isMeant, lte(id, sql.placeholder("last"))))
      .prepare(),
    findOne: db.select().from(stagedFlushes).where(isOne).prepare(),
    removeOne: db.delete(stagedFlushes).where(isOne).prepare(),
  };
}
