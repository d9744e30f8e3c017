import { Database } from "bun:sqlite";
import { createDirectWriter } from "../../../src/store/sqlite/direct-writer.ts";
import { startWorker, type StorageWorker } from "../../../src/store/sqlite/worker-client.ts";
import { createKeys, memoryLog, openTestStore, usageIncrement } from "../test-store.ts";

/** A direct writer beside a storage thread whose calls are recorded, on a database with the keys 1 and 2. */
export async function startDirectWriter({ maxCommitMs = Infinity } = {}) {
  const opened = await openTestStore();
  const { store, file } = opened;
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
  const worker: StorageWorker = {
    ...thread,
    async call(method, ...args) {
      calls.push(method);
      await state.gates[method];
      return thread.call(method, ...args);
    },
  };
  const logged = memoryLog();
  const direct = createDirectWriter({ file, worker, clock, log: logged.log, maxCommitMs });

  const add = (...keyIds: number[]): Promise<unknown> =>
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
    /** How many flushes are staged. */
    staged() {
      using client = new Database(file, { readonly: true });
      return client.query<{ rows: number }, []>("SELECT count(*) AS rows FROM usage_journal").get()?.rows ?? NaN;
    },
    /** The pages in SQLite's log. */
    logPages() {
      using client = new Database(file);
      return client.query<{ log: number }, []>("PRAGMA wal_checkpoint(NOOP)").get()?.log ?? NaN;
    },
    requestCount: async () => (await store.usage.sumOfKeys()).requestCount,
    async [Symbol.asyncDispose]() {
      direct.close();
      await worker.call("close");
      worker.stop();
      await opened[Symbol.asyncDispose]();
    },
  };
}
