import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { startMaintenance } from "./maintenance.ts";
import { inspectPostgres } from "./postgres/inspect-database.ts";
import { openPostgresStore } from "./postgres/open.ts";
import { inspectDataFolder } from "./sqlite/inspect-database.ts";
import { databaseFile, openSqliteStore } from "./sqlite/open.ts";
import { defaultRetention, type Retention } from "./retention.ts";
import type { Store } from "./store.ts";
import type { DatabaseState } from "./engine/contract.ts";

export interface StoreOptions {
  /** The folder of the SQLite database; created if it does not exist. Not used if there is a `databaseUrl`. */
  dataDir: string;
  /** `postgres://…`; undefined selects SQLite. */
  databaseUrl?: string | undefined;
  retention?: Retention;
  clock: WallClock;
  log: Log;
}

/**
 * Opens the database and applies pending migrations. Until it is closed, it deletes rows whose time is over.
 * @throws StorageError if it cannot be opened, or if a newer version of this program wrote it
 */
export async function openStore({
  dataDir,
  databaseUrl,
  retention = defaultRetention,
  clock,
  log,
}: StoreOptions): Promise<Store> {
  const store =
    databaseUrl === undefined
      ? await openSqliteStore({ dataDir, retention, clock, log })
      : await openPostgresStore({ url: databaseUrl, retention, clock });
  const stopMaintenance = startMaintenance({ step: store.maintain, log });
  return {
    ...store,
    async close() {
      stopMaintenance();
      await store.close();
    },
  };
}

/**
 * Reads the database without changing it.
 * @returns undefined if the first start has yet to create it
 * @throws StorageError if no server could start with it
 */
export async function inspectStore({
  dataDir,
  databaseUrl,
}: Pick<StoreOptions, "dataDir" | "databaseUrl">): Promise<DatabaseState | undefined> {
  return databaseUrl === undefined ? inspectDataFolder(databaseFile(dataDir)) : await inspectPostgres(databaseUrl);
}
