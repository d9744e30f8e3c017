import { Database } from "bun:sqlite";
import { createDirectWriter } from "../../../src/store/sqlite/direct-writer.ts";
import { databaseFile, openSqliteStore } from "../../../src/store/sqlite/open.ts";
import { startWorker, type StorageWorker } from "../../../src/store/sqlite/worker-client.ts";
import { copyMigratedDatabase } from "../../support/migrated-database.ts";
import { createTempFolder } from "../../support/temp-folder.ts";
import type { CommittedFlush } from "../../../src/store/usage/contract.ts";
import { createKeys, memoryLog, usageIncrement } from "../test-store.ts";

/** A direct writer beside a storage thread whose calls are recorded, on a database with the keys 1 and 2. */
export async function startDirectWriter({
  maxCommitMs = Infinity,
  monotonic = performance.now.bind(performance),
} = {}) {
  const folder = createTempFolder();
  copyMigratedDatabase(folder.path);
  const file = databaseFile(folder.path);
  const logged = memoryLog();
  // Without maintenance, which locks the database and folds a second after the start.
  const store = await openSqliteStore({ dataDir: folder.path, clock: Date.now, log: logged.log });
  await createKeys(store, ["a", "b"]);
  const state = {
    now: 60_000 * 1000,
    /** The number of the latest flush. */
    flushes: 0,
    /** A call of the storage thread begins when that of its method is resolved. */
    gates: {} as Record<string, Promise<void>>,
  };
  /** The calls that the storage thread got. */
  const calls: string[] = [];
  const clock = () => state.now;
  const thread = startWorker(clock);
  await thread.call("open", file);
  const callOnceOpen = async (method: string, ...args: unknown[]): Promise<unknown> => {
    await state.gates[method];
    return thread.call(method, ...args);
  };
  let latestFold: Promise<unknown> | undefined;
  const worker: StorageWorker = {
    ...thread,
    call(method, ...args) {
      calls.push(method);
      const reply = callOnceOpen(method, ...args);
      if (method === "fold") latestFold = reply;
      return reply;
    },
  };
  const direct = createDirectWriter({ file, worker, clock, monotonic, log: logged.log, maxCommitMs });

  const add = (...keyIds: number[]): Promise<CommittedFlush> =>
    direct.add(
      keyIds.map((keyId) => usageIncrement({ keyId, minute: 1000 })),
      { ledger: "test", number: ++state.flushes },
      [],
    );

  return {
    store,
    file,
    worker,
    direct,
    state,
    calls,
    /** What the thread did besides folding the staged flushes. */
    writes: () => calls.filter((call) => call !== "fold" && call !== "checkWritable"),
    logged: logged.entries,
    add,
    /** The first flush of a minute, and the fold after it, which locks the database. */
    async addFirst() {
      await add(1);
      await worker.call("checkWritable");
    },
    /** Waits for the thread's latest fold, and for what follows from it here. */
    async folded() {
      await latestFold;
      await new Promise(setImmediate);
    },
    /** How many flushes are staged. */
    staged() {
      using client = new Database(file, { readonly: true });
      return client.query<{ rows: number }, []>("SELECT count(*) AS rows FROM staged_flushes").get()?.rows ?? NaN;
    },
    /** The pages in SQLite's log. */
    logPages() {
      using client = new Database(file);
      return client.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()?.log ?? NaN;
    },
    requestCount: async () => (await store.usage.sumOfKeys()).requestCount,
    async [Symbol.asyncDispose]() {
      await direct.close();
      await worker.call("close");
      worker.stop();
      await store.close();
      folder.remove();
    },
  };
}
