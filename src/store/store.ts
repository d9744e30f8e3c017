// All data of the program, in SQLite or PostgreSQL. A folder for each noun has its contract and its queries.
//
// It keeps true: a write survives `kill -9` once its promise has resolved; every method fails with StorageError if the
// database fails or does not respond in time. Queries are written once, over an engine (`engine/engine.ts`); `open.ts`
// alone chooses which. Rows whose time is over (`retention.ts`) go in short portions (`maintenance.ts`), so that no
// request waits for it. The store does not import its callers.

import type { StoreSize } from "./engine/contract.ts";
import type { SqlStore } from "./sql-store.ts";

const reports: ReadonlySet<string> = new Set([
  "usage.daily",
  "usage.history",
  "usage.chart",
  "usage.costs",
  "gpu.powerHistory",
  "gpu.history",
]);

/** Whether a method gives a report, which is read in slices on demand. */
export const isReport = (method: string): boolean => reports.has(method);

export interface Store extends SqlStore {
  size(): Promise<StoreSize>;
  /** @returns why what was written is lost, such as a file that was deleted; undefined if it is not */
  close(): Promise<string | undefined>;
}
