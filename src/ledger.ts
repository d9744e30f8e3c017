import type { Receipt } from "./store/store.ts";

/** Turns receipts into committed counts. */
export interface Ledger {
  /**
   * Resolves once the receipt is committed, or after a second where storage is sick: the count then waits in memory.
   * Never rejects: a response must not fail because its count is late.
   */
  record(receipt: Receipt): Promise<void>;
  /** What waits to be written. */
  waiting(): { requests: number; keys: number; sinceMs: number };
  /** Writes what can be written and stops. */
  close(): Promise<void>;
}
