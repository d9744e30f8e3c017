import type { Log } from "../log/log.ts";
import type { WallClock } from "../time/clock.ts";
import { startMaintenance } from "./maintenance.ts";
import { inspectPostgres } from "./postgres/inspect-database.ts";
import { openPostgresStore } from "./postgres/open.ts";
import { type BackupPlan, createBackups } from "./sqlite/backup.ts";
import { inspectDataFolder } from "./sqlite/inspect-database.ts";
import { databaseFile, openSqliteStore } from "./sqlite/open.ts";
import { defaultRetention, type Retention } from "./retention.ts";
import type { StateRow } from "./backends/contract.ts";
import type { Store } from "./store.ts";
import type { DatabaseState } from "./engine/contract.ts";
import { withWorker } from "./sqlite/worker-client.ts";

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
export async function openStore(options: StoreOptions): Promise<Store> {
  const store = await openEngine(options);
  const stopMaintenance = startMaintenance({ portion: store.maintain, log: options.log });
  return {
    ...store,
    close() {
      stopMaintenance();
      return store.close();
    },
  };
}

const openEngine = ({ databaseUrl: url, retention = defaultRetention, ...rest }: StoreOptions): Promise<Store> =>
  url === undefined
    ? openSqliteStore({ ...rest, retention })
    : openPostgresStore({ url, retention, clock: rest.clock });

/** With what its servers say is wrong, if they have the tables for that. */
export type InspectedStore = DatabaseState & { states?: StateRow[] };
/** Makes the backups of a server, if it has a plan for them. @returns stops them */
export function startBackups(
  { dataDir, backup: plan }: { dataDir: string; backup?: BackupPlan | undefined },
  { store, clock, log }: { store: Pick<Store, "database">; clock: WallClock; log: Log },
): () => Promise<void> {
  if (plan === undefined) return async () => {};
  const backups = createBackups({ file: databaseFile(dataDir), plan, facts: store.database, clock, log });
  void backups.run();
  return backups.stop;
}

/**
 * Reads the database without changing it, and opens and closes it as a start does, unless that would create or migrate it.
 * @returns undefined if the first start has yet to create it
 * @throws StorageError if no server could start with it
 */
export async function inspectStore(options: StoreOptions): Promise<InspectedStore | undefined> {
  const { dataDir, databaseUrl, clock } = options;
  // The caller's thread goes on, as it takes minutes.
  const inspectInWorker = (file: string): Promise<DatabaseState> =>
    withWorker(clock, undefined, (call) => call("inspect", file, "quick") as Promise<DatabaseState>);
  const seen =
    databaseUrl === undefined
      ? await inspectDataFolder(databaseFile(dataDir), inspectInWorker)
      : await inspectPostgres(databaseUrl);
  if (seen?.pendingMigrations !== 0) return seen;
  const store = await openEngine(options);
  try {
    await store.checkWritable();
    return { ...seen, states: await store.states.list() };
  } finally {
    await store.close();
  }
}
