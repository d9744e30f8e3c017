import { createLog } from "../../../src/log.ts";
import { openStore } from "../../../src/store/open.ts";
import type { Store } from "../../../src/store/store.ts";
import { databaseUrlForTest } from "../../support/postgres.ts";
import { createTempFolder } from "../../support/temp-folder.ts";

export interface TestStore {
  store: Store;
  dataDir: string;
  remove: () => Promise<void>;
}

/** A real database in a folder of its own. */
export async function openTestStore(time: { now: number } = { now: 1 }): Promise<TestStore> {
  const folder = createTempFolder();
  const clock = () => time.now;
  const store = await openStore({
    dataDir: folder.path,
    databaseUrl: await databaseUrlForTest(),
    clock,
    log: createLog({ level: "error", format: "json", clock, write: () => {} }),
  });
  return {
    store,
    dataDir: folder.path,
    remove: async () => {
      await store.close();
      folder.remove();
    },
  };
}
