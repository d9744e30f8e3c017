import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { isSettled, pass, runTicks, startLedger, usageEvent, waitLimitMs } from "./start-ledger.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

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
  expect([await isSettled(second), ledger.areCountsWaiting()]).toEqual([false, false]);
  await pass(1);
  await second;
  // What its request had reserved must not be given back yet.
  expect(ledger.areCountsWaiting()).toBe(true);
  const third = ledger.record(usageEvent(1));
  expect(await isSettled(third)).toBe(false);
  flushes[1]?.commit();
  (await flushAt(2)).commit();
  await third;
  expect(ledger.areCountsWaiting()).toBe(false);
  expect(entries).toEqual([]);
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
