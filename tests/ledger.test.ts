import { expect, test } from "bun:test";
import { createLedger, type LedgerOptions } from "../src/ledger.ts";
import { type UsageEvent } from "../src/domain.ts";
import { type FlushId, StorageError, type UsageIncrement } from "../src/store/store.ts";
import { memoryLog } from "./store/test-store.ts";
import { pollUntil } from "./support/poll-until.ts";

interface Flush {
  counts: readonly UsageIncrement[];
  id: FlushId | undefined;
  commit: () => void;
  fail: (message: string) => void;
}

/** A store whose commits the test decides about. */
function scriptedLedger(options: Partial<LedgerOptions> = {}) {
  const flushes: Flush[] = [];
  const { entries, log } = memoryLog();
  const store: LedgerOptions["store"] = {
    add: (counts, id) =>
      new Promise((resolve, reject) => {
        flushes.push({ counts, id, commit: resolve, fail: (message) => reject(new StorageError(message)) });
      }),
  };
  const ledger = createLedger({ store, clock: () => 500_000, log, firstRetryMs: 1, slowestRetryMs: 5, ...options });
  const nextFlush = (position: number) => pollUntil(() => flushes[position]);
  return { ledger, flushes, entries, nextFlush };
}

const receipt = (keyId: number, closedAt = 120_000): UsageEvent => ({
  keyId,
  closedAt,
  inputTokens: 10,
  outputTokens: 2,
});

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  await Bun.sleep(5);
  return (await Promise.race([promise.then(() => "settled"), "open"])) === "settled";
}

test("a receipt is recorded when it is committed and not before", async () => {
  const { ledger, nextFlush } = scriptedLedger();
  const recorded = ledger.record(receipt(1));
  const flush = await nextFlush(0);
  expect(await isSettled(recorded)).toBe(false);
  expect(ledger.waiting()).toEqual({ requests: 1, keys: 1, sinceMs: 0 });
  flush.commit();
  await recorded;
  expect(ledger.waiting()).toEqual({ requests: 0, keys: 0, sinceMs: 0 });
});

test("what comes while one flush is written goes into the next, summed by key and minute", async () => {
  const { ledger, flushes, nextFlush } = scriptedLedger();
  const first = ledger.record(receipt(1));
  await nextFlush(0);
  const later = [receipt(1), receipt(2), receipt(1, 121_000), receipt(1, 180_000)].map((one) => ledger.record(one));
  flushes[0]?.commit();
  await first;
  expect(await isSettled(Promise.race(later))).toBe(false);
  const second = await nextFlush(1);
  expect(second.counts).toEqual([
    { keyId: 1, minute: 2, requestCount: 2, inputTokens: 20, outputTokens: 4, lastClosedAt: 121_000 },
    { keyId: 2, minute: 2, requestCount: 1, inputTokens: 10, outputTokens: 2, lastClosedAt: 120_000 },
    { keyId: 1, minute: 3, requestCount: 1, inputTokens: 10, outputTokens: 2, lastClosedAt: 180_000 },
  ]);
  second.commit();
  await Promise.all(later);
  expect(flushes).toHaveLength(2);
});

test("receipts of one turn of the event loop share one flush", async () => {
  const { ledger, flushes, nextFlush } = scriptedLedger();
  const recorded = Array.from({ length: 50 }, () => ledger.record(receipt(1)));
  (await nextFlush(0)).commit();
  await Promise.all(recorded);
  expect(flushes.map(({ counts }) => counts[0]?.requestCount)).toEqual([50]);
});

test("a failed flush is sent again, unchanged and under the same number, until it is through", async () => {
  const { ledger, flushes, nextFlush } = scriptedLedger();
  void ledger.record(receipt(1));
  (await nextFlush(0)).fail("locked");
  await ledger.record(receipt(1));
  (await nextFlush(1)).fail("locked");
  (await nextFlush(2)).commit();
  (await nextFlush(3)).commit();
  await pollUntil(() => ledger.waiting().requests === 0);
  expect(flushes.map(({ counts }) => counts)).toEqual(
    Array.from({ length: 4 }, () => [expect.objectContaining({ requestCount: 1 })]),
  );
  expect(new Set(flushes.slice(0, 3).map(({ id }) => JSON.stringify(id))).size).toBe(1);
  expect(flushes[3]?.id?.number).toBeGreaterThan(flushes[2]?.id?.number ?? 0);
});

test("a store that does not answer holds a response no longer than its patience, and the next not at all", async () => {
  const { ledger, entries, nextFlush } = scriptedLedger({ waitLimitMs: 50 });
  const begun = performance.now();
  await ledger.record(receipt(1));
  expect(performance.now() - begun).toBeGreaterThanOrEqual(45);
  const soon = performance.now();
  for (let n = 0; n < 1000; n++) await ledger.record(receipt(1 + (n % 3)));
  expect(performance.now() - soon).toBeLessThan(1000);
  expect(ledger.waiting()).toMatchObject({ requests: 1001, keys: 3 });
  expect(entries).toEqual([expect.objectContaining({ level: "warn", reason: "no answer" })]);
  (await nextFlush(0)).commit();
  (await nextFlush(1)).commit();
  await pollUntil(() => ledger.waiting().requests === 0);
});

test("falling behind and catching up are logged once each, however often a flush fails", async () => {
  const { ledger, entries, nextFlush } = scriptedLedger();
  await Promise.all([
    ledger.record(receipt(1)),
    (async () => {
      for (let n = 0; n < 5; n++) (await nextFlush(n)).fail("the disk is full");
    })(),
  ]);
  (await nextFlush(5)).commit();
  await pollUntil(() => ledger.waiting().requests === 0);
  expect(entries.map(({ level, reason }) => [level, reason])).toEqual([
    ["warn", "the disk is full"],
    ["info", undefined],
  ]);
  // Healed: the next receipt waits for its commit again.
  const recorded = ledger.record(receipt(1));
  expect(await isSettled(recorded)).toBe(false);
  (await nextFlush(6)).commit();
  await recorded;
});

test("storage that falls silent again after it was well holds a response no longer than before", async () => {
  const { ledger, entries, nextFlush } = scriptedLedger({ waitLimitMs: 100 });
  void ledger.record(receipt(1));
  (await nextFlush(0)).fail("locked");
  const retry = await nextFlush(1);
  await ledger.record(receipt(1));
  retry.commit();
  // This one is never answered, and what comes meanwhile waits behind it.
  await nextFlush(2);
  const joined = ledger.record(receipt(1));
  expect(await isSettled(joined)).toBe(false);
  await joined;
  expect(entries.map(({ level, reason }) => [level, reason])).toEqual([
    ["warn", "locked"],
    ["info", undefined],
    ["warn", "no answer"],
  ]);
});

test("how long the oldest count has waited is told by the clock", async () => {
  let now = 1000;
  const { ledger, nextFlush } = scriptedLedger({ clock: () => now });
  void ledger.record(receipt(1));
  const flush = await nextFlush(0);
  now = 8000;
  expect(ledger.waiting()).toEqual({ requests: 1, keys: 1, sinceMs: 7000 });
  flush.commit();
});

test("closing waits for what is being written", async () => {
  const { ledger, entries, nextFlush } = scriptedLedger();
  void ledger.record(receipt(1));
  const closed = ledger.close();
  const flush = await nextFlush(0);
  expect(await isSettled(closed)).toBe(false);
  flush.commit();
  await closed;
  expect(entries).toEqual([]);
});

test("closing while storage is sick ends after a while, lets every response go, and says what is lost", async () => {
  const { ledger, entries, nextFlush } = scriptedLedger({ closingMs: 20, waitLimitMs: 60_000 });
  const recorded = [ledger.record(receipt(1)), ledger.record(receipt(2))];
  await nextFlush(0);
  await ledger.close();
  await Promise.all(recorded);
  expect(entries).toEqual([expect.objectContaining({ level: "error", requests: 2, keys: 2 })]);
});

test("memory is bounded by keys and minutes while counts wait", async () => {
  const { ledger, flushes, nextFlush } = scriptedLedger({ waitLimitMs: 1 });
  await ledger.record(receipt(1));
  for (let n = 0; n < 50_000; n++) void ledger.record(receipt(1 + (n % 10), 120_000 + (n % 2) * 60_000));
  (await nextFlush(0)).commit();
  const { counts, commit } = await nextFlush(1);
  expect(counts).toHaveLength(10);
  expect(flushes).toHaveLength(2);
  expect(counts.reduce((sum, { requestCount }) => sum + requestCount, 0)).toBe(50_000);
  commit();
});
