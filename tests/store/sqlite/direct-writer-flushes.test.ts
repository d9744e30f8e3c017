import { Database } from "bun:sqlite";
import { expect, spyOn, test } from "bun:test";
import { firstPauseMs } from "../../../src/store/sqlite/direct-writer.ts";
import { startWorker } from "../../../src/store/sqlite/worker-client.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { startDirectWriter } from "./start-direct-writer.ts";

test("the thread writes the first flush of each minute, which prunes, and those of many keys", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, state } = started;
  await addFirst();
  expect(writes()).toEqual(["usage.add"]);
  await add(1);
  await add(2);
  expect(writes()).toHaveLength(1);
  await add(1, 2);
  expect(writes()).toHaveLength(1);
  await add(...Array.from({ length: 257 }, (_, n) => 1 + (n % 2)));
  expect(writes()).toHaveLength(2);
  state.now += 60_000;
  await addFirst();
  await add(1);
  expect(writes()).toHaveLength(3);
  expect(await requestCount()).toBe(264);
});

test("a flush that was written before counts once, whoever repeats it", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, state } = started;
  await addFirst();
  await add(1);
  state.flushes -= 1;
  await add(1);
  expect(writes()).toHaveLength(2);
  state.flushes -= 1;
  state.now += 60_000;
  await add(1);
  expect(writes()).toHaveLength(3);
  expect(await requestCount()).toBe(2);
});

test("while another program locks the database, the thread waits for it", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, direct, file } = started;
  await addFirst();
  using other = new Database(file);
  other.run("BEGIN IMMEDIATE");
  const adding = add(1);
  expect(await direct.findActive("secret of a")).toMatchObject({ id: 1 });
  other.run("ROLLBACK");
  await adding;
  expect(writes()).toHaveLength(2);
  expect(await requestCount()).toBe(2);
});

test("the thread folds the journal after every 128 rows", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, calls, journaled, requestCount, worker } = started;
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
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, file, state } = started;
  await addFirst();
  const gate = Promise.withResolvers<void>();
  state.foldGate = gate.promise;
  await add(...Array.from({ length: 128 }, () => 1));
  using other = new Database(file);
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
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, worker } = started;
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
  await using started = await startDirectWriter();
  const { add, addFirst, journaled, store, file, state } = started;
  await addFirst();
  await add(1, 2);
  expect(journaled()).toBe(1);
  expect((await store.keys.list()).map((key) => key.requestCount)).toEqual([2, 1]);
  expect(journaled()).toBe(0);
  await add(2);
  // The same program does not know of what is left.
  const next = startWorker(() => state.now);
  await next.call("open", file);
  expect(await next.call("usage.sumOfKeys")).toMatchObject({ requestCount: 4 });
  await next.call("close");
  next.stop();
});

test("what the database refuses stays in the journal, is logged, and keeps nothing else out", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, journaled, requestCount, logged, worker, file } = started;
  await addFirst();
  using other = new Database(file);
  other.run("CREATE TRIGGER refuse BEFORE UPDATE ON keys WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END");
  await add(1);
  await add(2);
  await add(1);
  expect(await worker.call("usage.sumOfKeys")).toMatchObject({ requestCount: 3 });
  expect(journaled()).toBe(1);
  await add(...Array.from({ length: 128 }, () => 1));
  await pollUntil(() => logged.some(({ message }) => message === "Database refuses usage; keeping it in the journal"));
  other.run("DROP TRIGGER refuse");
  expect(await requestCount()).toBe(132);
});

test("after a slow commit, the thread writes for a while", async () => {
  await using started = await startDirectWriter({ maxCommitMs: -1 });
  const { add, addFirst, writes, requestCount } = started;
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
