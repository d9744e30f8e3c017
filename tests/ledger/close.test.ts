import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { isSettled, pass, runTicks, startLedger, usageEvent } from "./start-ledger.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const closeTimeoutMs = 5000;

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
