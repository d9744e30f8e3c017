import { randomUUID } from "node:crypto";
import { and, asc, eq, gt, lte, sql } from "drizzle-orm";
import type { WallClock } from "../../time/clock.ts";
import type { Engine, Statement } from "../engine.ts";
import type { FlushedRequests } from "../request-log-store.ts";
import { toStorageError } from "../storage-error.ts";
import type { FlushId, UsageIncrement } from "../usage-store.ts";
import { createUsageWriter } from "../usage-writer.ts";
import { usageJournal } from "./journal-table.ts";

type JournaledUsage = [increments: readonly UsageIncrement[], requests: FlushedRequests | null];
type Row = typeof usageJournal.$inferSelect;

/** More rows hold the write lock for longer than a request should wait. */
const maxFolded = 500;

/** Appends a flush to the journal, which writes two pages where the tables of counts and the request log need a dozen. */
export function prepareAppend(
  engine: Engine,
): (flush: FlushId, increments: readonly UsageIncrement[], requests: FlushedRequests | undefined) => Statement {
  const insert = engine.prepareInsert(usageJournal, ["ledger", "flush", "usage"]);
  return ({ ledger, number }, increments, requests) => {
    const usage: JournaledUsage = [increments, requests ?? null];
    return insert([[ledger, number, JSON.stringify(usage)]]);
  };
}

export interface JournalFold {
  /**
   * Adds what the journal holds to the tables, each flush once.
   * @throws if the database cannot be written
   */
  fold(): Promise<void>;
  /** How many flushes the database has refused. They stay in the journal. */
  refused(): number;
  /** How many rows were added since the last call, about. */
  takeWritten(): number;
}

export function createJournalFold(engine: Engine, clock: WallClock): JournalFold {
  const { findFirst, findRows, remove, separate } = prepareStatements(engine);
  const writer = createUsageWriter(engine);
  /** The rows up to this one were refused. They are tried again after a restart. */
  let refusedId = 0;
  let refused = 0;
  let written = 0;

  /** @returns the rows that it found */
  function foldSome(limit: number): Promise<Row[]> {
    return writer.transaction(async () => {
      const rows = await findRows.execute({ after: refusedId, limit });
      const last = rows.at(-1);
      if (last === undefined) return rows;
      const usage = (await unrecorded(rows)).map((row) => JSON.parse(row.usage) as JournaledUsage);
      const increments = usage.flatMap(([one]) => one);
      const requests = mergeRequests(usage);
      await writer.write({ increments, requests });
      await remove.execute({ after: refusedId, last: last.id });
      written += increments.length + requests.rows.length;
      return rows;
    });
  }

  /** The flushes that the tables do not hold yet. A commit may succeed unnoticed, so that its flush comes again. */
  async function unrecorded(rows: readonly Row[]): Promise<Row[]> {
    const latest = new Map<string, number>();
    const found: Row[] = [];
    for (const row of rows) {
      const { ledger, flush } = row;
      const known = latest.get(ledger) ?? (await writer.findLastFlush(ledger));
      if (flush > known) found.push(row);
      latest.set(ledger, Math.max(known, flush));
    }
    for (const [ledger, flush] of latest) await writer.recordFlush({ ledger, number: flush }, clock());
    return found;
  }

  /** One at a time, so that what the database refuses does not keep it from the others. */
  async function foldEach(): Promise<void> {
    for (;;) {
      const [row] = await findRows.execute({ after: refusedId, limit: 1 });
      if (row === undefined) return;
      try {
        await foldSome(1);
      } catch (error) {
        if (!toStorageError(error).isRefusal) throw error;
        // As a ledger of its own: the flushes after it are recorded, and it would count as one of them.
        await separate.execute({ id: row.id, ledger: randomUUID() });
        refusedId = row.id;
        refused++;
      }
    }
  }

  return {
    async fold() {
      try {
        while (findFirst.get({ after: refusedId }) !== undefined) await foldSome(maxFolded);
      } catch (error) {
        if (!toStorageError(error).isRefusal) throw error;
        await foldEach();
      }
    },
    refused: () => refused,
    takeWritten() {
      const rows = written;
      written = 0;
      return rows;
    },
  };
}

const mergeRequests = (usage: readonly JournaledUsage[]): FlushedRequests => ({
  rows: usage.flatMap(([, requests]) => requests?.rows ?? []),
  amendments: usage.flatMap(([, requests]) => requests?.amendments ?? []),
});

// oxlint-disable-next-line typescript/explicit-function-return-type -- Drizzle's types of prepared statements
function prepareStatements({ db }: Engine) {
  const { id } = usageJournal;
  const after = gt(id, sql.placeholder("after"));
  return {
    findFirst: db.select({ id }).from(usageJournal).where(after).limit(1).prepare(),
    findRows: db.select().from(usageJournal).where(after).orderBy(asc(id)).limit(sql.placeholder("limit")).prepare(),
    remove: db
      .delete(usageJournal)
      .where(and(after, lte(id, sql.placeholder("last"))))
      .prepare(),
    separate: db
      .update(usageJournal)
      .set({ ledger: sql`${sql.placeholder("ledger")}` })
      .where(eq(id, sql.placeholder("id")))
      .prepare(),
  };
}
