import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, spyOn, test } from "bun:test";
import { createDirectWriter, type DirectWriter, firstPauseMs } from "../../../src/store/sqlite/direct-writer.ts";
import { noLimits } from "../../../src/store/key-rules.ts";
import type { CountedLoad } from "../../../src/store/limit-store.ts";
import { startWorker, type StorageWorker } from "../../../src/store/sqlite/worker-client.ts";
import { dayOf } from "../../../src/time/seoul.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { createKeys, memoryLog, openTestStore, type SqliteTestStore, usageIncrement } from "../test-store.ts";

let opened: SqliteTestStore;
let worker: StorageWorker;
let direct: DirectWriter;
let now: number;
/** The calls that the storage thread got. */
let calls: string[];
let flushes: number;
/** A fold begins when it is resolved. */
let foldGate: Promise<void>;
let logged: ReturnType<typeof memoryLog>;

beforeEach(async () => {
  opened = await openTestStore();
  await createKeys(opened.store, ["a", "b"]);
  now = 60_000 * 1000;
  calls = [];
  flushes = 0;
  foldGate = Promise.resolve();
  logged = memoryLog();
  const thread = startWorker(() => now);
  await thread.call("open", opened.file);
  worker = {
    ...thread,
    async call(method, ...args) {
      calls.push(method);
      if (method === "fold") await foldGate;
      return thread.call(method, ...args);
    },
  };
  open(Infinity);
});

function open(maxCommitMs: number): void {
  direct = createDirectWriter({ file: opened.file, worker, clock: () => now, log: logged.log, maxCommitMs });
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

function journaled(): number {
  using client = new Database(opened.file, { readonly: true });
  return client.query<{ rows: number }, []>("SELECT count(*) AS rows FROM usage_journal").get()?.rows ?? NaN;
}

/** What the thread did besides folding the journal. */
const writes = (): string[] => calls.filter((call) => call !== "fold" && call !== "checkWritable");

/** The first flush of a minute, until the thread has folded the journal after it: a fold locks the database. */
async function addFirst(): Promise<void> {
  await add(1);
  await worker.call("checkWritable");
}

let admitted = 0;
const limits = { ...noLimits, requests_per_minute: 100, tokens_per_minute: 1000, tokens_per_day: 100 };

/** @returns the limits that refuse requests of one key, which reserve 30 tokens each */
async function admit(keyId: number, count = 1): Promise<(string | undefined)[]> {
  const requests = Array.from({ length: count }, () => ({ keyId, limits, tokens: 30, number: ++admitted }));
  const results = await direct.admit({ instance: "one", requests, ended: [] });
  return results.map(({ refusedBy }) => refusedBy);
}

/** Ends the latest admission of a key. */
const settle = (keyId: number, tokens: number): Promise<unknown> =>
  direct.add(
    [usageIncrement({ keyId, minute: now / 60_000, lastClosedAt: now, inputTokens: tokens, outputTokens: 0 })],
    { ledger: "test", number: ++flushes },
    [],
    undefined,
    [{ keyId, instance: "one", number: admitted }],
  );

const loadsOf = async (...keyIds: number[]): Promise<CountedLoad[]> =>
  (await worker.call("limits.listLoads", keyIds)) as CountedLoad[];

const requestCount = async (): Promise<number> => (await opened.store.usage.sumOfKeys()).requestCount;

test("the thread writes the first flush of each minute, which prunes, and those of many keys", async () => {
  await addFirst();
  expect(writes()).toEqual(["usage.add"]);
  await add(1);
  await add(2);
  expect(writes()).toHaveLength(1);
  await add(1, 2);
  expect(writes()).toHaveLength(1);
  await add(...Array.from({ length: 257 }, (_, n) => 1 + (n % 2)));
  expect(writes()).toHaveLength(2);
  now += 60_000;
  await addFirst();
  await add(1);
  expect(writes()).toHaveLength(3);
  expect(await requestCount()).toBe(264);
});

test("a flush that was written before counts once, whoever repeats it", async () => {
  await addFirst();
  await add(1);
  flushes -= 1;
  await add(1);
  expect(writes()).toHaveLength(2);
  flushes -= 1;
  now += 60_000;
  await add(1);
  expect(writes()).toHaveLength(3);
  expect(await requestCount()).toBe(2);
});

test("while another program locks the database, the thread waits for it", async () => {
  await addFirst();
  using other = new Database(opened.file);
  other.run("BEGIN IMMEDIATE");
  const adding = add(1);
  expect(await direct.findActive("secret of a")).toMatchObject({ id: 1 });
  other.run("ROLLBACK");
  await adding;
  expect(writes()).toHaveLength(2);
  expect(await requestCount()).toBe(2);
});

test("the thread folds the journal after every 128 rows", async () => {
  await addFirst();
  await add(...Array.from({ length: 100 }, () => 1));
  expect(journaled()).toBe(1);
  expect(calls.splice(0)).toEqual(["usage.add", "fold", "checkWritable"]);
  await add(...Array.from({ length: 28 }, () => 2));
  expect(calls).toEqual(["fold"]);
  await worker.call("checkWritable");
  expect(journaled()).toBe(0);
  expect(await requestCount()).toBe(129);
});

test("a flush that finds the database locked while the thread folds waits for it, and is committed here", async () => {
  await addFirst();
  const gate = Promise.withResolvers<void>();
  foldGate = gate.promise;
  await add(...Array.from({ length: 128 }, () => 1));
  using other = new Database(opened.file);
  other.run("BEGIN IMMEDIATE");
  const adding = add(2);
  expect(await Promise.race([adding, Bun.sleep(20).then(() => "waits")])).toBe("waits");
  other.run("ROLLBACK");
  gate.resolve();
  await adding;
  expect(writes()).toEqual(["usage.add"]);
  expect(await requestCount()).toBe(130);
});

test("the thread runs a checkpoint after every 1000 pages, and writes what comes meanwhile", async () => {
  await addFirst();
  let added = 1;
  for (; !writes().includes("checkpoint"); added++) await add(1);
  expect(added).toBeWithin(470, 500);
  const before = writes().length;
  await add(1);
  expect(writes().slice(before)).toEqual(["usage.add"]);
  // Runs after the checkpoint.
  await worker.call("checkWritable");
  await add(1);
  expect(writes()).toHaveLength(before + 1);
  expect(await requestCount()).toBe(added + 2);
});

test("what the journal holds is part of every count, and a killed program's too", async () => {
  await addFirst();
  await add(1, 2);
  expect(journaled()).toBe(1);
  expect((await opened.store.keys.list()).map((key) => key.requestCount)).toEqual([2, 1]);
  expect(journaled()).toBe(0);
  await add(2);
  // The same program does not know of what is left.
  const next = startWorker(() => now);
  await next.call("open", opened.file);
  expect(await next.call("usage.sumOfKeys")).toMatchObject({ requestCount: 4 });
  await next.call("close");
  next.stop();
});

test("what the database refuses stays in the journal, is logged, and keeps nothing else out", async () => {
  await addFirst();
  using other = new Database(opened.file);
  other.run("CREATE TRIGGER refuse BEFORE UPDATE ON keys WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END");
  await add(1);
  await add(2);
  await add(1);
  expect(await worker.call("usage.sumOfKeys")).toMatchObject({ requestCount: 3 });
  expect(journaled()).toBe(1);
  await add(...Array.from({ length: 128 }, () => 1));
  await pollUntil(() =>
    logged.entries.some(({ message }) => message === "Database refuses usage; keeping it in the journal"),
  );
  other.run("DROP TRIGGER refuse");
  expect(await requestCount()).toBe(132);
});

test("requests are admitted here, except the first ones of a minute, after which the thread prunes", async () => {
  expect(await admit(1)).toEqual([undefined]);
  expect(writes()).toEqual(["limits.admit"]);
  expect(await admit(1, 3)).toEqual([undefined, undefined, "tokens_per_day"]);
  expect(await admit(2, 257)).toContain("tokens_per_day");
  expect(writes()).toEqual(["limits.admit", "limits.admit"]);
  now += 60_000;
  await admit(2);
  expect(writes()).toHaveLength(3);
  const [first, second] = await loadsOf(1, 2);
  expect(first).toMatchObject({ inFlight: 3, reserved: 90, refusedToday: 1 });
  expect(second).toMatchObject({ inFlight: 3, refusedToday: 255 });
});

test("what ended counts against the limits before the journal is folded, and once after it", async () => {
  await addFirst();
  await admit(1);
  await settle(1, 80);
  expect(journaled()).toBe(1);
  calls = [];
  expect(await admit(1)).toEqual(["tokens_per_day"]);
  expect(calls).toEqual([]);
  flushes -= 1;
  await settle(1, 80);
  expect(calls).toEqual(["usage.add"]);
  const [load] = await loadsOf(1);
  expect(load).toMatchObject({ inFlight: 0, reserved: 0, minuteTokens: 80, dayTokens: 92, minuteRequests: 1 });
  expect(journaled()).toBe(0);
  // The key's total and its day agree.
  expect(await opened.store.usage.sumOfKeys()).toMatchObject({ requestCount: 2, inputTokens: 90 });
  expect(await opened.store.usage.sumOfDay(dayOf(now))).toMatchObject({ requestCount: 2, inputTokens: 90 });
});

test("a flush that the thread may have written counts once in the sums of days", async () => {
  await admit(1);
  await settle(1, 80);
  flushes -= 1;
  await settle(1, 80);
  expect(writes()).toEqual(["limits.admit", "usage.add", "usage.add"]);
  const [load] = await loadsOf(1);
  expect(load).toMatchObject({ inFlight: 0, reserved: 0, minuteTokens: 80, dayTokens: 80 });
});

test("what is left of a refused flush counts once in the sums of days", async () => {
  await addFirst();
  using other = new Database(opened.file);
  other.run("CREATE TRIGGER refuse BEFORE UPDATE ON keys WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END");
  await admit(2);
  await settle(2, 50);
  await worker.call("usage.sumOfKeys");
  expect(journaled()).toBe(1);
  other.run("DROP TRIGGER refuse");
  expect((await loadsOf(2))[0]).toMatchObject({ inFlight: 0, dayTokens: 50 });
});

test("admissions and counts of one moment are committed one after the other", async () => {
  await addFirst();
  await admit(1);
  await settle(1, 0);
  calls = [];
  const all = await Promise.all([admit(1), add(1), admit(1), settle(2, 5), admit(1, 2), add(2)]);
  expect([all[0], all[2], all[4]].flat()).toEqual([undefined, undefined, "tokens_per_day", "tokens_per_day"]);
  expect(calls).toEqual([]);
  expect(await requestCount()).toBe(5);
});

test("while another program locks the database, the thread admits when it is free", async () => {
  await admit(1);
  using other = new Database(opened.file);
  other.run("BEGIN IMMEDIATE");
  const admitting = admit(1);
  await pollUntil(() => writes().length === 2);
  other.run("ROLLBACK");
  expect(await admitting).toEqual([undefined]);
  expect((await loadsOf(1))[0]).toMatchObject({ inFlight: 2 });
});

test("after a slow commit, the thread writes for a while", async () => {
  direct.close();
  open(-1);
  await addFirst();
  let elapsedMs = performance.now();
  const performanceNow = spyOn(performance, "now").mockImplementation(() => elapsedMs);
  await add(1);
  expect(writes()).toHaveLength(1);
  await add(1);
  expect(writes()).toHaveLength(2);
  elapsedMs += firstPauseMs;
  await add(1);
  expect(writes()).toHaveLength(2);
  elapsedMs += firstPauseMs;
  await add(1);
  expect(writes()).toHaveLength(3);
  performanceNow.mockRestore();
  expect(await requestCount()).toBe(5);
});
