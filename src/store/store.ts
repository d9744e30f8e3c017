// All data of the program, in SQLite or PostgreSQL. A folder for each noun has its contract and its queries.
//
// It keeps true: a write survives `kill -9` once its promise has resolved; every method fails with StorageError if the
// database fails or does not respond in time. Queries are written once, over an engine (`engine/engine.ts`); `open.ts`
// alone chooses which. Rows whose time is over (`retention.ts`) go in short portions (`maintenance.ts`), so that no
// request waits for it. The store does not import its callers.

import type { BackendStore, NoticeStore, StateStore } from "./backends/contract.ts";
import type { DatabaseStore, StoreSize } from "./engine/contract.ts";
import type { GpuStore } from "./gpu/contract.ts";
import type { KeyStore, SubjectStore } from "./keys/contract.ts";
import type { LimitStore } from "./limits/contract.ts";
import type { RequestLogStore } from "./requests/contract.ts";
import type { AuditStore, SessionStore, SettingsStore, SignInStore, TokenStore } from "./accounts/contract.ts";
import type { TrafficStore } from "./traffic/contract.ts";
import type { UsageStore, ReconciliationStore } from "./usage/contract.ts";

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

export interface Store {
  readonly keys: KeyStore;
  readonly subjects: SubjectStore;
  readonly usage: UsageStore;
  readonly requests: RequestLogStore;
  readonly traffic: TrafficStore;
  readonly reconciliation: ReconciliationStore;
  readonly backends: BackendStore;
  readonly states: StateStore;
  readonly notices: NoticeStore;
  readonly database: DatabaseStore;
  readonly limits: LimitStore;
  readonly gpu: GpuStore;
  readonly sessions: SessionStore;
  readonly signIns: SignInStore;
  readonly tokens: TokenStore;
  readonly audit: AuditStore;
  readonly settings: SettingsStore;
  /**
   * One short portion of what keeps the database small: deletes rows whose time is over, then gives space back.
   * @returns whether there is more to do now
   */
  maintain(): Promise<boolean>;
  /** Writes a row. @throws StorageError if the database cannot be written */
  checkWritable(): Promise<void>;
  size(): Promise<StoreSize>;
  /** @returns why what was written is lost, such as a file that was deleted; undefined if it is not */
  close(): Promise<string | undefined>;
}
