import type { StoreSize } from "./engine/contract.ts";
import type { DatabaseStore } from "./engine/database-store.ts";
import type { GpuStore } from "./gpu/contract.ts";
import type { KeyStore } from "./keys/contract.ts";
import type { LimitStore } from "./limits/contract.ts";
import type { ReconciliationStore } from "./usage/reconciliation-store.ts";
import type { RequestLogStore } from "./requests/contract.ts";
import type { SessionStore } from "./accounts/contract.ts";
import type { TrafficStore } from "./traffic/contract.ts";
import type { UsageStore } from "./usage/contract.ts";

/**
 * All data of the program, in SQLite or PostgreSQL. A write survives `kill -9` once its promise has resolved. Every method
 * fails with StorageError if the database fails or does not respond in time.
 */
export interface Store {
  readonly keys: KeyStore;
  readonly usage: UsageStore;
  readonly requests: RequestLogStore;
  readonly traffic: TrafficStore;
  readonly reconciliation: ReconciliationStore;
  readonly database: DatabaseStore;
  readonly limits: LimitStore;
  readonly gpu: GpuStore;
  readonly sessions: SessionStore;
  readonly settings: SettingsStore;
  /** Writes a row. @throws StorageError if the database cannot be written */
  checkWritable(): Promise<void>;
  size(): Promise<StoreSize>;
  close(): Promise<void>;
}

export interface SettingsStore {
  find(name: string): Promise<string | undefined>;
  set(name: string, value: string): Promise<void>;
  /** @returns the stored value, which may be one that another process has set */
  setIfAbsent(name: string, value: string): Promise<string>;
}

export interface StorageErrorOptions extends ErrorOptions {
  /** The database works but refuses these values, so the same write fails again. */
  isRefusal?: boolean;
}

/** The database is full, locked, damaged, unreachable or too slow, or refuses a value. The message is meant for the operator. */
export class StorageError extends Error {
  override name = "StorageError";
  readonly isRefusal: boolean;

  constructor(message: string, { isRefusal = false, ...options }: StorageErrorOptions = {}) {
    super(message, options);
    this.isRefusal = isRefusal;
  }
}
