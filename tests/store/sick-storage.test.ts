import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { createLedger, type Ledger } from "../../src/ledger.ts";
import { toStorageError } from "../../src/store/storage-error.ts";
import { StorageError } from "../../src/store/store.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createKeys, memoryLog, openTestEngine, openTestStore } from "./test-store.ts";

const record = (ledger: Ledger, n = 0) =>
  ledger.record({ keyId: 1, closedAt: Date.now() + n, inputTokens: 3, outputTokens: 2 });

test("while another program locks the database, keys are found and usage is buffered, then written", async () => {
  await using opened = await openTestStore();
  const { store, file, entries } = opened;
  await createKeys(store, ["a"]);
  const ledger = createLedger({ store: store.usage, clock: Date.now, log: memoryLog().log });
  using other = new Database(file);
  other.run("BEGIN EXCLUSIVE");

  await record(ledger);
  for (let n = 0; n < 100; n++) await record(ledger);
  expect(await store.keys.findActive("secret of a")).toEqual({ id: 1 });
  expect(ledger.waiting()).toMatchObject({ requests: 101, keys: 1 });
  const created = store.keys.create({ name: "b", key: "b", createdAt: 0 });
  await expect(created).rejects.toThrow("another program has locked the database (SQLITE_BUSY)");
  await expect(created).rejects.toBeInstanceOf(StorageError);
  await expect(store.checkWritable()).rejects.toThrow("another program has locked the database");

  other.run("ROLLBACK");
  await pollUntil(() => ledger.waiting().requests === 0);
  expect(await store.usage.sumOfKeys()).toEqual({ requestCount: 101, inputTokens: 303, outputTokens: 202 });
  await store.checkWritable();
  await ledger.close();
  expect(entries).toEqual([]);
}, 30_000);

test("while the disk is full, reads succeed and usage is buffered, then written", async () => {
  await using opened = await openTestEngine();
  const { store, engine } = opened;
  await createKeys(store, ["a"]);
  const { log, entries } = memoryLog();
  // Calls to this engine must not overlap: until the ledger is done, nothing else uses it.
  const add = async (...args: Parameters<typeof store.usage.add>) => {
    try {
      await store.usage.add(...args);
    } catch (error) {
      throw toStorageError(error);
    }
  };
  const ledger = createLedger({ store: { add }, clock: Date.now, log, firstRetryMs: 10, maxRetryMs: 10 });
  await engine.rows(sql`pragma max_page_count = 1`);
  await Promise.all(Array.from({ length: 5000 }, (_, n) => record(ledger, n * 60_000)));
  expect(entries).toMatchObject([{ level: "warn", reason: "the disk is full (SQLITE_FULL)" }]);
  expect(await store.keys.findActive("secret of a")).toEqual({ id: 1 });
  expect(ledger.waiting()).toMatchObject({ requests: 5000 });
  expect(await store.usage.sumOfKeys()).toMatchObject({ requestCount: 0 });

  await engine.rows(sql`pragma max_page_count = 1000000`);
  await pollUntil(() => ledger.waiting().requests === 0);
  await ledger.close();
  expect(await store.usage.sumOfKeys()).toEqual({ requestCount: 5000, inputTokens: 15_000, outputTokens: 10_000 });
  expect(await store.usage.sumOfMinutes(0, 100_000_000)).toMatchObject({ requestCount: 5000 });
});

/** Collects the Workers that are started, so that a test can terminate one. */
function collectWorkers(): { started: Worker[] } & Disposable {
  const RealWorker = globalThis.Worker;
  const started: Worker[] = [];
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      started.push(this);
    }
  };
  return {
    started,
    [Symbol.dispose]() {
      globalThis.Worker = RealWorker;
    },
  };
}

test("a storage thread that stops is restarted: pending calls fail, keys are found, no usage is lost", async () => {
  using workers = collectWorkers();
  await using opened = await openTestStore();
  const { store, entries } = opened;
  await createKeys(store, ["a"]);
  const ledger = createLedger({ store: store.usage, clock: Date.now, log: memoryLog().log });
  let recorded = 0;
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 20; n++, recorded++) await record(ledger);
    const listed = store.keys.list();
    const recording = Array.from({ length: 10 }, () => record(ledger));
    recorded += recording.length;
    workers.started.at(-1)?.terminate();
    await expect(listed).rejects.toBeInstanceOf(StorageError);
    await expect(store.keys.list()).rejects.toThrow("the storage thread is not running");
    expect(await store.keys.findActive("secret of a")).toEqual({ id: 1 });
    await Promise.all(recording);
    await pollUntil(() => ledger.waiting().requests === 0);
  }
  expect(await store.usage.sumOfKeys()).toMatchObject({ requestCount: recorded });
  expect(workers.started).toHaveLength(4);
  expect(entries.map(({ level }) => level)).toEqual(["error", "info", "error", "info", "error", "info"]);
  await ledger.close();
});

test("a report fails, rather than ending early, if the storage thread stops while it is read", async () => {
  using workers = collectWorkers();
  await using opened = await openTestStore();
  await createKeys(opened.store, ["a"]);
  const minute = Math.floor(Date.now() / 60_000);
  const increments = Array.from({ length: 5000 }, (_, n) => ({
    keyId: 1,
    minute: minute - n,
    requestCount: 1,
    inputTokens: 1,
    outputTokens: 1,
    lastClosedAt: 0,
  }));
  await opened.store.usage.add(increments);
  const slices = opened.store.usage.history({ since: 0, bucketMinutes: 1 })[Symbol.asyncIterator]();
  expect((await slices.next()).done).toBe(false);
  workers.started.at(-1)?.terminate();
  await expect(slices.next()).rejects.toBeInstanceOf(StorageError);
});
