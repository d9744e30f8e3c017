import { expect, test } from "bun:test";
import { createLedger, type Ledger } from "../../src/ledger/ledger.ts";
import { StorageError } from "../../src/store/storage-error.ts";
import type { WorkerCall } from "../../src/store/sqlite/worker.ts";
import { pollUntil } from "../support/poll-until.ts";
import { createKeys, memoryLog, openTestStore, usageIncrement } from "./test-store.ts";

const record = (ledger: Ledger, n = 0) =>
  ledger.record({ keyId: 1, closedAt: Date.now() + n, inputTokens: 3, outputTokens: 2 });

/** Collects the Workers that are started, so that a test can terminate one. */
function collectWorkers() {
  const RealWorker = globalThis.Worker;
  const started: Worker[] = [];
  const calls = new Map<Worker, WorkerCall[]>();
  globalThis.Worker = class extends RealWorker {
    constructor(...args: ConstructorParameters<typeof Worker>) {
      super(...args);
      started.push(this);
      calls.set(this, []);
    }

    override postMessage(message: WorkerCall): void {
      calls.get(this)?.push(message);
      super.postMessage(message);
    }
  };
  return {
    started,
    /** The calls that were sent to a Worker, by its number. */
    callsOf: (n: number): WorkerCall[] => calls.get(started[n] as Worker) ?? [],
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
    expect(await store.keys.findActive("secret of a")).toEqual({ id: 1, rules: null, expiresAt: null });
    await Promise.all(recording);
    await pollUntil(() => ledger.waiting().requests === 0);
    await pollUntil(() =>
      store.checkWritable().then(
        () => true,
        () => false,
      ),
    );
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
  const increments = Array.from({ length: 5000 }, (_, n) => usageIncrement({ keyId: 1, minute: minute - n }));
  await opened.store.usage.add(increments);
  const slices = opened.store.usage.history({ since: 0, bucketMinutes: 1 })[Symbol.asyncIterator]();
  expect((await slices.next()).done).toBe(false);
  workers.started.at(-1)?.terminate();
  await expect(slices.next()).rejects.toBeInstanceOf(StorageError);
});

test("a report that is broken off, or never read, leaves nothing in the storage thread", async () => {
  using workers = collectWorkers();
  await using opened = await openTestStore();
  const minute = Math.floor(Date.now() / 60_000);
  await opened.store.usage.add(
    Array.from({ length: 5000 }, (_, n) => usageIncrement({ keyId: 1, minute: minute - n })),
  );
  const calls = workers.callsOf(0);
  for await (const _ of opened.store.usage.history({ since: 0, bucketMinutes: 1 })) break;
  const slices = opened.store.usage.daily("2020-01-01")[Symbol.asyncIterator]();
  await slices.next();
  await slices.return?.();
  for await (const _ of opened.store.usage.history({ since: 0, bucketMinutes: 60 })) await opened.store.checkWritable();
  opened.store.usage.history({ since: 0, bucketMinutes: 1 })[Symbol.asyncIterator]();
  expect(calls.filter(({ method }) => method === "openReport")).toHaveLength(3);
  const closed = calls.filter(({ method }) => method === "closeReport").map(({ args }) => args);
  expect(new Set(closed).size).toBe(3);
  // Each of them is closed in the thread too.
  const [id] = JSON.parse(closed[0] ?? "");
  workers.started[0]?.postMessage({ id: -1, method: "readSlice", args: JSON.stringify([id]), now: 0 });
  const reply = await new Promise<{ error?: string }>((resolve) =>
    workers.started[0]?.addEventListener("message", ({ data }) => data.id === -1 && resolve(data)),
  );
  expect(reply.error).toBe("the report is no longer open");
});
