import { createLog } from "../../../src/log/log.ts";
import { openStore } from "../../../src/store/open.ts";
import { defaultRetention } from "../../../src/store/retention.ts";
import type { Store } from "../../../src/store/store.ts";
import { copyMigratedDatabase } from "../../support/migrated-database.ts";
import { type EngineName, takeDatabase } from "../../support/postgres.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

export interface TestStore {
  store: Store;
  dataDir: string;
  /** Undefined for SQLite. */
  databaseUrl: string | undefined;
  remove: () => Promise<void>;
}

/** A real database of its own. */
export async function openTestStore(
  time: { now: number } = { now: 1 },
  retention = defaultRetention,
  engine: EngineName = "SQLite",
): Promise<TestStore> {
  const folder = createTempFolder();
  const clock = () => time.now;
  const database = engine === "PostgreSQL" ? await takeDatabase() : undefined;
  if (database === undefined) copyMigratedDatabase(folder.path);
  const store = await openStore({
    dataDir: folder.path,
    databaseUrl: database?.url,
    retention,
    clock,
    log: createLog({ level: "error", format: "json", clock, write: () => {} }),
  });
  return {
    store,
    dataDir: folder.path,
    databaseUrl: database?.url,
    remove: async () => {
      await store.close();
      database?.release();
      folder.remove();
    },
  };
}
