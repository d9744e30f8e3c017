/** What the console shows of the database itself. */
export interface DatabaseStore {
  describe(): Promise<{ kind: "sqlite" | "postgresql"; version: string; sizeBytes: number }>;
  tables(): Promise<readonly string[]>;
  /** Counts up to a limit, so that a long table holds up nothing. */
  countRows(table: string): Promise<{ rows: number; isExact: boolean }>;
  /** Whether a newer build migrated it since, and whether this one may write to it all the same. */
  schema(): Promise<{ isNewer: boolean; mayWrite: boolean }>;
  /** Those that servers made by themselves. */
  backups(): Promise<BackupFacts>;
  recordBackups(facts: BackupFacts): Promise<void>;
}

/** What is known of a server's own backups. Times are epoch milliseconds. */
export interface BackupFacts {
  succeeded?: { at: number; file: string };
  /** Of the latest that failed, or was not begun; until the next good one. */
  problem?: { kind: "failed" | "skipped"; at: number; reason: string };
}

export interface StoreSize {
  bytes: number;
  /** The size of SQLite's write-ahead log. */
  logBytes?: number;
}

/** What can be seen of a database without opening it for a server. */
export interface DatabaseState {
  bytes: number;
  /** How many migrations the next start applies. */
  pendingMigrations: number;
  /** The latest use of any key, epoch milliseconds. */
  lastUsedAt: number | undefined;
  /** The clock of the database server, epoch milliseconds; undefined if the database is a file. */
  serverTime?: number;
}
