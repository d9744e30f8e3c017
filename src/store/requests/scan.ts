import { desc } from "drizzle-orm";
import type { Engine } from "../engine/engine.ts";

/** The rows that one call looks at: about five milliseconds, in which no flush runs. */
export const rowsPerScan = 2000;

/** A process whose flushes failed writes older requests after newer ones of another process. */
export const lateMs = 10 * 60_000;

export async function findLastId({ db, tables: { requestLog: log } }: Engine): Promise<number> {
  const [row] = await db.select({ id: log.id }).from(log).orderBy(desc(log.id)).limit(1);
  return row?.id ?? 0;
}
