import { createLog } from "../../../src/log/log.ts";
import { openStore } from "../../../src/store/open.ts";
import { defaultRetention } from "../../../src/store/retention.ts";
import type { Store } from "../../../src/store/store.ts";
import { databaseUrlForTest } from "../../support/postgres.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

export interface TestStore {
  store: Store;
  dataDir: string;
  /** Undefined for SQLite. */
  databaseUrl: string | undefined;
  remove: () => Promise<void>;
}

/** A real database in its own temporary folder. */
export async function openTestStore(
  time: { now: number } = { now: 1 },
  retention = defaultRetention,
): Promise<TestStore> {
  const folder = createTempFolder();
  const clock = () => time.now;
  const databaseUrl = await databaseUrlForTest();
  const store = await openStore({
    dataDir: folder.path,
    databaseUrl,
    retention,
    clock,
    log: createLog({ level: "error", format: "json", clock, write: () => {} }),
  });
  return {
    store,
    dataDir: folder.path,
    databaseUrl,
    remove: async () => {
      await store.close();
      folder.remove();
    },
  };
}
