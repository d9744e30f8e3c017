import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { openPostgresStore } from "./postgres/open.ts";
import { openSqliteStore } from "./sqlite/open.ts";
import type { RequestLogLimits } from "./request-log-store.ts";
import type { Store } from "./store.ts";

export interface StoreOptions {
  /** The folder of the SQLite database; created if it does not exist. Not used if there is a `databaseUrl`. */
  dataDir: string;
  /** `postgres://…`; undefined selects SQLite. */
  databaseUrl?: string | undefined;
  requestLog?: RequestLogLimits | undefined;
  clock: WallClock;
  log: Log;
}

/**
 * Opens the database and applies pending migrations.
 * @throws StorageError if it cannot be opened, or if a newer version of this program wrote it
 */
export async function openStore({ dataDir, databaseUrl, requestLog, clock, log }: StoreOptions): Promise<Store> {
  return databaseUrl === undefined
    ? await openSqliteStore({ dataDir, requestLog, clock, log })
    : await openPostgresStore({ url: databaseUrl, requestLog, clock });
}
