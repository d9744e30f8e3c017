import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { Usage, UsageEvent } from "../src/domain.ts";
import { createLedger, type LedgerOptions } from "../src/ledger.ts";
import type { FlushId, ResponseUsage, UsageIncrement } from "../src/store/usage-store.ts";
import { StorageError } from "../src/store/store.ts";
import { requestRecord } from "./store/logged-requests.ts";
import { memoryLog } from "./store/test-store.ts";

interface Flush {
  increments: readonly UsageIncrement[];
  responses: readonly ResponseUsage[];
  id: FlushId | undefined;
  /** @param added the tokens that were added for each of the responses */
  commit: (added?: Usage[]) => void;
  fail: (message: string) => void;
  reject: () => void;
}

const waitLimitMs = 1000;
const maxRetryMs = 5;
const closeTimeoutMs = 5000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

/** Runs everything that does not wait for a timer. */
async function runTicks(): Promise<void> {
  for (let n = 0; n < 3; n++) await new Promise(setImmediate);
}

async function pass(ms: number): Promise<void> {
  await runTicks();
  jest.advanceTimersByTime(ms);
  await runTicks();
}

/** A ledger over a store whose commits the test decides. */
function startLedger(options: Partial<LedgerOptions> = {}) {
  const flushes: Flush[] = [];
  const { entries, log } = memoryLog();
  const store: LedgerOptions["store"] = {
    add: (increments, id, responses = []) =>
      new Promise((resolve, reject) => {
        flushes.push({
          increments,
          responses,
          id,
          commit: (added = []) => resolve(added),
          fail: (message) => reject(new StorageError(message)),
          reject: () => reject(new StorageError("out of range", { isRefusal: true })),
        });
      }),
  };
  const ledger = createLedger({
    store,
    clock: () => 500_000,
    log,
    waitLimitMs,
    firstRetryMs: 1,
    maxRetryMs,
    ...options,
  });
  /** The flush at this position, which starts at once or after a retry pause. */
  const flushAt = async (position: number): Promise<Flush> => {
    await runTicks();
    if (flushes[position] === undefined) await pass(maxRetryMs);
    const flush = flushes[position];
    if (flush === undefined) throw new Error(`There is no flush ${position}`);
    return flush;
  };
  return { ledger, flushes, entries, flushAt };
}

const usageEvent = (keyId: number, closedAt = 120_000): UsageEvent => ({
  keyId,
  closedAt,
  inputTokens: 10,
  outputTokens: 2,
});

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  void promise.then(() => (settled = true));
  await runTicks();
  return settled;
}

test("an event is recorded once it is committed, and not before", async () => {
  const { ledger, flushAt } = startLedger();
  const recorded = ledger.record(usageEvent(1));
  const flush = await flushAt(0);
  expect(await isSettled(recorded)).toBe(false);
  expect(ledger.waiting()).toEqual({ requests: 1, keys: 1, sinceMs: 0 });
  flush.commit();
  await recorded;
  expect(ledger.waiting()).toEqual({ requests: 0, keys: 0, sinceMs: 0 });
});

test("events that arrive during a flush go into the next one, summed by key and minute", async () => {
  const { ledger, flushes, flushAt } = startLedger();
  const first = ledger.record(usageEvent(1));
  await flushAt(0);
  const events = [usageEvent(1), usageEvent(2), usageEvent(1, 121_000), usageEvent(1, 120_500), usageEvent(1, 180_000)];
  const later = events.map((one) => ledger.record(one));
  flushes[0]?.commit();
  await first;
  expect(await isSettled(Promise.race(later))).toBe(false);
  const second = await flushAt(1);
  expect(second.increments).toEqual([
    { keyId: 1, minute: 2, requestCount: 3, inputTokens: 30, outputTokens: 6, lastClosedAt: 121_000 },
    { keyId: 2, minute: 2, requestCount: 1, inputTokens: 10, outputTokens: 2, lastClosedAt: 120_000 },
    { keyId: 1, minute: 3, requestCount: 1, inputTokens: 10, outputTokens: 2, lastClosedAt: 180_000 },
  ]);
  second.commit();
  await Promise.all(later);
  expect(flushes).toHaveLength(2);
});

test("events of one tick share a flush", async () => {
  const { ledger, flushes, flushAt } = startLedger();
  const recorded: Promise<unknown>[] = [];
  for (let n = 0; n < 50; n++) {
    recorded.push(ledger.record(usageEvent(1)));
    await Promise.resolve();
  }
  (await flushAt(0)).commit();
  await Promise.all(recorded);
  expect(flushes.map(({ increments }) => increments[0]?.requestCount)).toEqual([50]);
});

test("a failed flush is sent again, unchanged and under the same id, until it succeeds", async () => {
  const { ledger, flushes, flushAt } = startLedger();
  void ledger.record(usageEvent(1));
  (await flushAt(0)).fail("locked");
  await runTicks();
  await ledger.record(usageEvent(1));
  (await flushAt(1)).fail("locked");
  (await flushAt(2)).commit();
  (await flushAt(3)).commit();
  await runTicks();
  expect(ledger.waiting().requests).toBe(0);
  expect(flushes.map(({ increments }) => increments)).toEqual(
    Array.from({ length: 4 }, () => [expect.objectContaining({ requestCount: 1 })]),
  );
  expect(new Set(flushes.slice(0, 3).map(({ id }) => JSON.stringify(id))).size).toBe(1);
  expect(flushes[3]?.id?.number).toBeGreaterThan(flushes[2]?.id?.number ?? 0);
});

test("a store that does not respond delays a response by the wait limit, and the next ones not at all", async () => {
  const { ledger, entries, flushAt } = startLedger();
  const first = ledger.record(usageEvent(1));
  await pass(waitLimitMs - 1);
  expect(await isSettled(first)).toBe(false);
  await pass(1);
  await first;
  for (let n = 0; n < 1000; n++) await ledger.record(usageEvent(1 + (n % 3)));
  expect(ledger.waiting()).toMatchObject({ requests: 1001, keys: 3 });
  expect(entries).toEqual([expect.objectContaining({ level: "warn", reason: "no response in time" })]);
  (await flushAt(0)).commit();
  (await flushAt(1)).commit();
  await runTicks();
  expect(ledger.waiting().requests).toBe(0);
});

test("a response waits no longer than the limit for two flushes, and storage that is faster for each is not unavailable", async () => {
  const { ledger, flushes, entries, flushAt } = startLedger();
  void ledger.record(usageEvent(1));
  await flushAt(0);
  await pass(100);
  const second = ledger.record(usageEvent(1));
  await pass(800);
  flushes[0]?.commit();
  await flushAt(1);
  await pass(199);
  expect(await isSettled(second)).toBe(false);
  await pass(1);
  await second;
  const third = ledger.record(usageEvent(1));
  expect(await isSettled(third)).toBe(false);
  flushes[1]?.commit();
  (await flushAt(2)).commit();
  await third;
  expect(entries).toEqual([]);
});

test("a flush that fails lets the responses of the next one go too", async () => {
  const { ledger, flushAt } = startLedger();
  const first = ledger.record(usageEvent(1));
  const flush = await flushAt(0);
  const second = ledger.record(usageEvent(1));
  expect(await isSettled(Promise.race([first, second]))).toBe(false);
  flush.fail("locked");
  await Promise.all([first, second]);
});

test("a store whose reply waits in a stalled event loop is not unavailable", async () => {
  const { ledger, entries, flushAt } = startLedger();
  const recorded = ledger.record(usageEvent(1));
  const flush = await flushAt(0);
  // Bun runs timers that are due before it takes in messages of other threads (1.4.5).
  jest.advanceTimersByTime(waitLimitMs + 500);
  flush.commit();
  await recorded;
  await runTicks();
  expect(entries).toEqual([]);
});

test("an outage is logged once when it starts and once when it ends, however many flushes fail", async () => {
  const { ledger, entries, flushAt } = startLedger();
  const duringOutage = ledger.record(usageEvent(1));
  for (let n = 0; n < 5; n++) (await flushAt(n)).fail("the disk is full");
  await duringOutage;
  (await flushAt(5)).commit();
  await runTicks();
  expect(entries).toMatchObject([
    { level: "warn", message: "Database unavailable; buffering usage in memory", reason: "the disk is full" },
    { level: "info", message: "Database available again; writing buffered usage" },
  ]);
  // The next event waits for its commit again.
  const recorded = ledger.record(usageEvent(1));
  expect(await isSettled(recorded)).toBe(false);
  (await flushAt(6)).commit();
  await recorded;
});

test("a store that stops responding after a recovery delays a response by the wait limit again", async () => {
  const { ledger, entries, flushAt } = startLedger();
  void ledger.record(usageEvent(1));
  (await flushAt(0)).fail("locked");
  const retry = await flushAt(1);
  await ledger.record(usageEvent(1));
  retry.commit();
  // This flush never commits, and the next event waits for the one after it.
  await flushAt(2);
  const joined = ledger.record(usageEvent(1));
  await pass(waitLimitMs - 1);
  expect(await isSettled(joined)).toBe(false);
  await pass(1);
  await joined;
  expect(entries.map(({ level, reason }) => [level, reason])).toEqual([
    ["warn", "locked"],
    ["info", undefined],
    ["warn", "no response in time"],
  ]);
});

test("the pause between two attempts doubles up to its bound", async () => {
  const { ledger, flushes, flushAt } = startLedger({ firstRetryMs: 50, maxRetryMs: 2000 });
  void ledger.record(usageEvent(1));
  (await flushAt(0)).fail("locked");
  for (const [n, pauseMs] of [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000].entries()) {
    await pass(pauseMs - 1);
    expect(flushes).toHaveLength(n + 1);
    await pass(1);
    expect(flushes).toHaveLength(n + 2);
    flushes[n + 1]?.fail("locked");
  }
  await runTicks();
});

test("storage that takes longer than the wait limit for each flush is logged once, and no response waits for it", async () => {
  const { ledger, entries, flushAt } = startLedger();
  void ledger.record(usageEvent(1));
  for (let n = 0; n < 10; n++) {
    const flush = await flushAt(n);
    await pass(waitLimitMs + 200);
    await ledger.record(usageEvent(1));
    flush.commit();
    await runTicks();
  }
  expect(entries).toEqual([expect.objectContaining({ level: "warn", reason: "no response in time" })]);
});

test("the waiting time in an outage of ten minutes is that of the oldest event, and 0 after it", async () => {
  let now = 500_000;
  const { ledger, flushes, flushAt } = startLedger({ clock: () => now });
  void ledger.record(usageEvent(1));
  (await flushAt(0)).fail("locked");
  for (let minute = 1; minute <= 10; minute++) {
    now += 60_000;
    void ledger.record(usageEvent(1));
    expect(ledger.waiting()).toMatchObject({ requests: minute + 1, sinceMs: minute * 60_000 });
    (await flushAt(minute)).fail("locked");
    await runTicks();
  }
  (await flushAt(11)).commit();
  await flushAt(12);
  expect(ledger.waiting()).toMatchObject({ requests: 10, sinceMs: 9 * 60_000 });
  flushes[12]?.commit();
  await runTicks();
  expect(ledger.waiting().sinceMs).toBe(0);
});

test("close ends a pause and writes at once", async () => {
  const { ledger, flushes, entries, flushAt } = startLedger({ firstRetryMs: 60_000, maxRetryMs: 60_000 });
  void ledger.record(usageEvent(1));
  (await flushAt(0)).fail("locked");
  await runTicks();
  void ledger.record(usageEvent(2));
  const closed = ledger.close(closeTimeoutMs);
  await runTicks();
  flushes[1]?.commit();
  await runTicks();
  flushes[2]?.commit();
  expect(await closed).toBe(true);
  expect(flushes.map(({ increments }) => increments.map(({ keyId }) => keyId))).toEqual([[1], [1], [2]]);
  expect(entries.map(({ level }) => level)).toEqual(["warn", "info"]);
});

test("the waiting time of the oldest event follows the clock", async () => {
  let now = 1000;
  const { ledger, flushAt } = startLedger({ clock: () => now });
  void ledger.record(usageEvent(1));
  const flush = await flushAt(0);
  now = 8000;
  expect(ledger.waiting()).toEqual({ requests: 1, keys: 1, sinceMs: 7000 });
  flush.commit();
});

test("close waits for the flush that is being written", async () => {
  const { ledger, entries, flushAt } = startLedger();
  void ledger.record(usageEvent(1));
  const closed = ledger.close(closeTimeoutMs);
  const flush = await flushAt(0);
  expect(await isSettled(closed)).toBe(false);
  flush.commit();
  await closed;
  expect(entries).toEqual([]);
});

test("close during an outage stops after its timeout, releases every response and logs what is lost", async () => {
  const { ledger, entries, flushAt } = startLedger({ waitLimitMs: 60_000 });
  const recorded = [ledger.record(usageEvent(1)), ledger.record(usageEvent(2))];
  await flushAt(0);
  const closed = ledger.close(closeTimeoutMs);
  await pass(closeTimeoutMs - 1);
  expect(await isSettled(closed)).toBe(false);
  await pass(1);
  await Promise.all([closed, ...recorded]);
  expect(entries).toEqual([expect.objectContaining({ level: "error", requests: 2, keys: 2 })]);
});

test("tokens that are lost without a request of their own are logged too", async () => {
  const { ledger, entries, flushAt } = startLedger();
  void ledger.record({ ...usageEvent(1), requestCount: 0 });
  await flushAt(0);
  const closed = ledger.close(closeTimeoutMs);
  await pass(closeTimeoutMs);
  expect(await closed).toBe(false);
  expect(entries.filter(({ level }) => level === "error")).toEqual([expect.objectContaining({ requests: 0, keys: 1 })]);
});

test("during an outage, memory grows with keys and minutes, not with requests", async () => {
  const { ledger, flushes, flushAt } = startLedger();
  void ledger.record(usageEvent(1));
  await pass(waitLimitMs);
  for (let n = 0; n < 50_000; n++) void ledger.record(usageEvent(1 + (n % 10), 120_000 + (n % 2) * 60_000));
  (await flushAt(0)).commit();
  const { increments, commit } = await flushAt(1);
  expect(increments).toHaveLength(10);
  expect(flushes).toHaveLength(2);
  expect(increments.reduce((sum, { requestCount }) => sum + requestCount, 0)).toBe(50_000);
  commit();
});

/** Commits every flush but those with usage of key 13. @returns the increments that were committed */
async function commitOthers({ flushes, flushAt }: ReturnType<typeof startLedger>, from: number, to: number) {
  for (let n = from; n < to; n++) {
    const flush = await flushAt(n);
    if (flush.increments.some(({ keyId }) => keyId === 13)) flush.reject();
    else flush.commit();
  }
  await runTicks();
  expect(flushes).toHaveLength(to);
}

test("a flush that the database refuses is split until only what it refuses is left, which is set aside and logged", async () => {
  const started = startLedger();
  const { ledger, flushes, entries } = started;
  const recorded = Promise.all([11, 12, 13, 14].map((keyId) => ledger.record(usageEvent(keyId))));
  await commitOthers(started, 0, 5);
  await recorded;
  expect(flushes.map(({ increments }) => increments.map(({ keyId }) => keyId))).toEqual([
    [11, 12, 13, 14],
    [11, 12],
    [13, 14],
    [13],
    [14],
  ]);
  expect(new Set(flushes.map(({ id }) => id?.number)).size).toBe(5);
  expect(ledger.waiting()).toMatchObject({ requests: 0, keys: 0 });
  expect(ledger.refusedRequests()).toBe(1);
  expect(entries).toEqual([
    expect.objectContaining({
      level: "error",
      message: "Database refuses usage; keeping it in memory",
      reason: "out of range",
      keyId: 13,
      requestCount: 1,
      inputTokens: 10,
      outputTokens: 2,
    }),
  ]);
});

test("requests whose usage the database refuses are counted as dropped from the request log", async () => {
  const { ledger, flushAt } = startLedger({ logsRequests: true });
  const admission = { keyId: 11, instance: "a", number: 1 };
  void ledger.record({ ...usageEvent(11), admission, request: requestRecord({ keyId: 11 }) });
  (await flushAt(0)).reject();
  (await flushAt(1)).reject();
  (await flushAt(2)).commit();
  await runTicks();
  expect([ledger.refusedRequests(), ledger.droppedRequests()]).toEqual([1, 1]);
  await ledger.close();
});

test("a key whose usage was refused has a flush of its own from then on, is logged once a minute, and gets everything when it can be written", async () => {
  let now = 500_000;
  const started = startLedger({ clock: () => now });
  const { ledger, flushes, entries, flushAt } = started;
  const record = (keyId: number) => void ledger.record(usageEvent(keyId));
  record(13);
  await commitOthers(started, 0, 1);
  for (const keyId of [11, 13]) record(keyId);
  await commitOthers(started, 1, 3);
  expect(flushes.slice(1).map(({ increments }) => increments.map(({ keyId }) => keyId))).toEqual([[11], [13]]);
  expect(entries).toHaveLength(1);
  now += 60_000;
  record(13);
  await commitOthers(started, 3, 4);
  expect(entries.slice(1)).toMatchObject([{ keyId: 13, requestCount: 2, inputTokens: 20, outputTokens: 4 }]);
  expect(ledger.refusedRequests()).toBe(3);

  record(13);
  (await flushAt(4)).commit();
  const kept = await flushAt(5);
  expect(kept.increments).toMatchObject([{ keyId: 13, requestCount: 3, inputTokens: 30, outputTokens: 6 }]);
  kept.commit();
  await runTicks();
  expect(ledger.refusedRequests()).toBe(0);
  expect(await ledger.close()).toBe(true);
});

test("refused usage that is left when the ledger closes is logged by key, and close returns false", async () => {
  const started = startLedger();
  const { ledger, entries } = started;
  void ledger.record(usageEvent(13));
  void ledger.record(usageEvent(13, 180_000));
  await commitOthers(started, 0, 3);
  expect(await ledger.close()).toBe(false);
  expect(entries.slice(1)).toMatchObject([
    { level: "error", message: "Usage that the database refused is lost", keyId: 13, requestCount: 2, inputTokens: 20 },
  ]);
});

test("the tokens of a response go apart from its request, and what they added is returned", async () => {
  const { ledger, flushAt } = startLedger();
  const recorded = ["a", "b", "a"].map((responseId) => ledger.record({ ...usageEvent(1), responseId }));
  const flush = await flushAt(0);
  expect(flush.increments).toMatchObject([{ keyId: 1, requestCount: 3, inputTokens: 0, outputTokens: 0 }]);
  expect(flush.responses).toEqual([
    { responseId: "a", keyId: 1, closedAt: 120_000, inputTokens: 10, outputTokens: 2 },
    { responseId: "b", keyId: 1, closedAt: 120_000, inputTokens: 10, outputTokens: 2 },
  ]);
  flush.commit([
    { inputTokens: 10, outputTokens: 2 },
    { inputTokens: 0, outputTokens: 1 },
  ]);
  expect((await Promise.all(recorded)).map(({ inputTokens, outputTokens }) => [inputTokens, outputTokens])).toEqual([
    [10, 2],
    [0, 1],
    [0, 0],
  ]);
});

test("a response that the database refuses is set aside with its key", async () => {
  const { ledger, entries, flushAt } = startLedger();
  void ledger.record({ ...usageEvent(13), responseId: "a" });
  (await flushAt(0)).reject();
  (await flushAt(1)).commit();
  const tokens = await flushAt(2);
  expect([tokens.increments.length, tokens.responses.length]).toEqual([0, 1]);
  tokens.reject();
  await runTicks();
  expect(entries).toMatchObject([{ keyId: 13, requestCount: 0, inputTokens: 10, outputTokens: 2 }]);
});
