export interface StoreSize {
  bytes: number;
  /** Of SQLite's write-ahead log. */
  logBytes?: number;
}

/** What can be seen of a database without opening it for a server. */
export interface DatabaseState {
  bytes: number;
  /** How many migrations the next start applies. */
  pendingMigrations: number;
  /** Of all keys, epoch milliseconds. */
  lastUsedAt: number | undefined;
  /** The clock of the database server, epoch milliseconds; undefined if the database is a file. */
  serverTime?: number;
}
