import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { createDirectWriter, type DirectWriter, firstPauseMs } from "../../../src/store/sqlite/direct-writer.ts";
import { startWorker, type StorageWorker } from "../../../src/store/sqlite/worker-client.ts";
import { createKeys, openTestStore, type SqliteTestStore, usageIncrement } from "../test-store.ts";

let opened: SqliteTestStore;
let worker: StorageWorker;
let direct: DirectWriter;
let now: number;
/** The calls that the storage thread got. */
let calls: string[];
let flushes: number;

beforeEach(async () => {
  opened = await openTestStore();
  await createKeys(opened.store, ["a", "b"]);
  now = 60_000 * 1000;
  calls = [];
  flushes = 0;
  const thread = startWorker(() => now);
  await thread.call("open", opened.file);
  worker = {
    ...thread,
    call(method, ...args) {
      calls.push(method);
      return thread.call(method, ...args);
    },
  };
  open(Infinity);
});

function open(maxCommitMs: number): void {
  direct = createDirectWriter({ file: opened.file, worker, clock: () => now, maxCommitMs });
}

afterEach(async () => {
  direct.close();
  await worker.call("close");
  worker.stop();
  await opened[Symbol.asyncDispose]();
});

const add = (...keyIds: number[]): Promise<unknown> =>
  direct.add(
    keyIds.map((keyId) => usageIncrement({ keyId, minute: 1000 })),
    { ledger: "test", number: ++flushes },
    [],
  );

const requestCount = async (): Promise<number> => (await opened.store.usage.sumOfKeys()).requestCount;

test("the thread writes the first flush of each minute, which prunes, and those of many keys", async () => {
  await add(1);
  expect(calls).toEqual(["usage.add"]);
  await add(1);
  await add(2);
  expect(calls).toHaveLength(1);
  await add(1, 2);
  expect(calls).toHaveLength(1);
  await add(...Array.from({ length: 65 }, (_, n) => 1 + (n % 2)));
  expect(calls).toHaveLength(2);
  now += 60_000;
  await add(1);
  await add(1);
  expect(calls).toHaveLength(3);
  expect(await requestCount()).toBe(72);
});

test("a flush that was written before counts once, whoever repeats it", async () => {
  await add(1);
  await add(1);
  flushes -= 1;
  await add(1);
  expect(calls).toHaveLength(1);
  flushes -= 1;
  now += 60_000;
  await add(1);
  expect(calls).toHaveLength(2);
  expect(await requestCount()).toBe(2);
});

test("while another program locks the database, the thread waits for it", async () => {
  await add(1);
  using other = new Database(opened.file);
  other.run("BEGIN IMMEDIATE");
  const adding = add(1);
  expect(await direct.findActive("secret of a")).toMatchObject({ id: 1 });
  other.run("ROLLBACK");
  await adding;
  expect(calls).toHaveLength(2);
  expect(await requestCount()).toBe(2);
});

test("the thread runs a checkpoint after every 1000 pages, and writes what comes meanwhile", async () => {
  await add(1);
  for (let n = 0; n < 125; n++) await add(1);
  expect(calls).toEqual(["usage.add", "checkpoint"]);
  await add(1);
  expect(calls).toEqual(["usage.add", "checkpoint", "usage.add"]);
  await add(1);
  expect(calls).toHaveLength(3);
  expect(await requestCount()).toBe(128);
});

test("after a slow commit, the thread writes for a while", async () => {
  direct.close();
  open(0);
  await add(1);
  await add(1);
  expect(calls).toHaveLength(1);
  await add(1);
  expect(calls).toHaveLength(2);
  await Bun.sleep(firstPauseMs);
  await add(1);
  expect(calls).toHaveLength(2);
  await Bun.sleep(firstPauseMs);
  await add(1);
  expect(calls).toHaveLength(3);
  expect(await requestCount()).toBe(5);
});
