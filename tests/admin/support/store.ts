import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../../src/log.ts";
import { openStore } from "../../../src/store/open.ts";
import type { Store } from "../../../src/store/store.ts";

export interface TestStore {
  store: Store;
  dataDir: string;
  remove: () => Promise<void>;
}

/** A real database in a folder of its own. */
export async function openTestStore(time: { now: number } = { now: 1 }): Promise<TestStore> {
  const dataDir = await mkdtemp(join(tmpdir(), "tollgate-admin-"));
  const clock = () => time.now;
  const store = await openStore({
    dataDir,
    clock,
    log: createLog({ level: "error", format: "json", clock, write: () => {} }),
  });
  return {
    store,
    dataDir,
    remove: async () => {
      await store.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}
