import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { firstPauseMs } from "../../../src/store/sqlite/direct-writer.ts";
import { startWorker } from "../../../src/store/sqlite/worker-client.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { startDirectWriter } from "./start-direct-writer.ts";

/** Another program, which waits for locks as programs do. */
function openOther(file: string): Database {
  const other = new Database(file);
  other.run("PRAGMA busy_timeout = 20000");
  return other;
}

test("flushes are committed here, and those of many keys by the thread", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, state } = started;
  await addFirst();
  await add(1);
  await add(2);
  await add(1, 2);
  expect(writes()).toEqual([]);
  await add(...Array.from({ length: 257 }, (_, n) => 1 + (n % 2)));
  expect(writes()).toEqual(["usage.add"]);
  state.now += 60_000;
  await addFirst();
  await add(1);
  expect(writes()).toHaveLength(1);
  expect(await requestCount()).toBe(264);
});

test("a flush that was written before counts once, whoever repeats it", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, state } = started;
  await addFirst();
  await add(1);
  state.flushes -= 1;
  await add(1);
  expect(writes()).toHaveLength(1);
  state.flushes -= 1;
  state.now += 60_000;
  await add(1);
  expect(writes()).toHaveLength(2);
  expect(await requestCount()).toBe(2);
});

test("while another program locks the database, the thread waits for it", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, writes, requestCount, direct, file } = started;
  await addFirst();
  using other = openOther(file);
  other.run("BEGIN IMMEDIATE");
  const adding = add(1);
  expect(await direct.findActive("secret of a")).toMatchObject({ id: 1 });
  other.run("ROLLBACK");
  await adding;
  expect(writes()).toEqual(["usage.add"]);
  expect(await requestCount()).toBe(2);
});

test("the thread folds the staged flushes after the first flush of a minute, and after every 512 rows", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, calls, staged, requestCount, worker, state } = started;
  await addFirst();
  for (let flush = 0; flush < 5; flush++) await add(...Array.from({ length: 100 }, () => 1));
  expect(staged()).toBe(5);
  expect(calls.splice(0)).toEqual(["fold", "checkWritable"]);
  await add(...Array.from({ length: 12 }, () => 2));
  expect(calls).toEqual(["fold"]);
  await worker.call("checkWritable");
  expect(staged()).toBe(0);
  state.now += 60_000;
  await add(1);
  expect(calls.splice(0)).toEqual(["fold", "checkWritable", "fold"]);
  expect(await requestCount()).toBe(514);
});

for (const method of ["fold", "maintain"]) {
  test(`a flush that finds the database locked during ${method} of the thread waits, and is committed here`, async () => {
    await using started = await startDirectWriter();
    const { add, addFirst, writes, requestCount, file, state, direct } = started;
    await addFirst();
    const gate = Promise.withResolvers<void>();
    state.gates[method] = gate.promise;
    for (let flush = 0; flush < 2; flush++) await add(...Array.from({ length: 256 }, () => 1));
    if (method === "maintain") await started.folded();
    const maintained = method === "maintain" ? direct.maintain() : undefined;
    using other = openOther(file);
    other.run("BEGIN IMMEDIATE");
    const adding = add(2);
    expect(await Promise.race([adding, Bun.sleep(20).then(() => "waits")])).toBe("waits");
    other.run("ROLLBACK");
    gate.resolve();
    await adding;
    await maintained;
    expect(writes().filter((call) => call !== method)).toEqual([]);
    expect(await requestCount()).toBe(514);
  });
}

test("after 1000 pages the thread copies the log while commits go on here, and they wait while it begins the log anew", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, calls, writes, requestCount, logPages, folded, state } = started;
  await addFirst();
  const [copying, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  state.gates = { copyLog: copying.promise, checkpoint: ending.promise };
  let added = 1;
  for (; !calls.includes("copyLog"); added++) {
    await add(1);
    await folded();
  }
  expect(logPages()).toBeWithin(1000, 2000);
  const before = writes().length;
  await add(1);
  expect(writes().slice(before)).toEqual([]);
  copying.resolve();
  await pollUntil(() => calls.includes("checkpoint"));
  const adding = add(1);
  expect(await Promise.race([adding, Bun.sleep(20).then(() => "waits")])).toBe("waits");
  ending.resolve();
  await adding;
  await add(1);
  expect(writes().slice(before)).toEqual(["checkpoint"]);
  expect(logPages()).toBeWithin(1, 20);
  expect(await requestCount()).toBe(added + 3);
});

test("staged flushes are part of every count, and a killed program's too", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, staged, store, file, state } = started;
  await addFirst();
  await add(1, 2);
  expect(staged()).toBe(1);
  expect((await store.keys.list()).map((key) => key.requestCount)).toEqual([2, 1]);
  expect(staged()).toBe(0);
  await add(2);
  // The same program does not know of what is left.
  const next = startWorker(() => state.now);
  await next.call("open", file);
  expect(await next.call("usage.sumOfKeys")).toMatchObject({ requestCount: 4 });
  await next.call("close");
  next.stop();
});

test("what the database refuses is reported with a later flush, or logged at the end, and keeps nothing else out", async () => {
  await using started = await startDirectWriter();
  const { add, addFirst, direct, staged, logged, worker, file } = started;
  await addFirst();
  using other = openOther(file);
  other.run("CREATE TRIGGER refuse BEFORE UPDATE ON keys WHEN new.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END");
  await add(1);
  await add(2);
  await add(1);
  expect(await worker.call("usage.sumOfKeys")).toMatchObject({ requestCount: 3 });
  expect(staged()).toBe(0);
  const refused = { reason: "no (SQLITE_CONSTRAINT_TRIGGER)", increments: [{ keyId: 2, requestCount: 1 }] };
  const ones = Array.from({ length: 256 }, () => 1);
  const reported = await pollUntil(async () => {
    const { refused: found = [] } = await add(...ones);
    return found.length > 0 && found;
  });
  expect(reported).toMatchObject([refused]);
  await add(2);
  await direct.close();
  expect(logged).toContainEqual(
    expect.objectContaining({ message: "Database refuses usage; it is not counted", keyId: 2, requestCount: 1 }),
  );
});

test("after two slow commits in a row, the thread writes for a while", async () => {
  let elapsedMs = 1000;
  await using started = await startDirectWriter({ maxCommitMs: -1, monotonic: () => elapsedMs });
  const { add, addFirst, writes, requestCount } = started;
  await addFirst();
  await add(1);
  expect(writes()).toEqual([]);
  await add(1);
  expect(writes()).toHaveLength(1);
  elapsedMs += firstPauseMs;
  await add(1);
  expect(writes()).toHaveLength(1);
  elapsedMs += firstPauseMs;
  await add(1);
  expect(writes()).toHaveLength(2);
  expect(await requestCount()).toBe(5);
});

test("slow commits with a fast one between them do not keep the calling thread from writing", async () => {
  const took = [0, 6, 0, 6, 0];
  let elapsedMs = 1000;
  // The clock is read before and after a commit.
  let reads = 0;
  const monotonic = (): number => {
    if (reads++ % 2 === 1) elapsedMs += took.shift() ?? 0;
    return elapsedMs;
  };
  await using started = await startDirectWriter({ maxCommitMs: 5, monotonic });
  const { add, addFirst, writes } = started;
  await addFirst();
  for (let flush = 0; flush < 4; flush++) await add(1);
  expect(took).toHaveLength(0);
  expect(writes()).toEqual([]);
});
