import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import type { KeyUsage } from "../../src/domain/usage.ts";
import { isSettled, runTicks, startLedger, usageEvent } from "./start-ledger.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

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

test("the tokens that a read adds are those of its own key, whoever else reads or creates the response", async () => {
  const { ledger, flushAt } = startLedger();
  const reported = { inputTokens: 10, outputTokens: 2 };
  const recorded = [
    ledger.record({ ...usageEvent(1), created: { id: "a", reported } }),
    ledger.record({ ...usageEvent(1), responseId: "a" }),
    ledger.record({ ...usageEvent(2), responseId: "a" }),
  ];
  const flush = await flushAt(0);
  expect(flush.responses.map(({ keyId, as }) => [keyId, as])).toEqual([
    [1, "created"],
    [1, undefined],
    [2, undefined],
  ]);
  flush.commit([0, 3, 4].map((outputTokens) => ({ inputTokens: 0, outputTokens })));
  expect((await Promise.all(recorded)).map(({ outputTokens }) => outputTokens)).toEqual([2, 3, 4]);
});

test("the observer is told what a flush added to the counts, and nothing of what is not committed", async () => {
  const committed: number[][] = [];
  const observer = {
    committed: (_: number, counts: readonly KeyUsage[]) =>
      void committed.push(...counts.map((one) => [one.keyId, one.requestCount, one.inputTokens, one.outputTokens])),
    commitFailed: () => {},
  };
  const { ledger, flushAt } = startLedger({ observer });
  void ledger.record(usageEvent(1));
  void ledger.record({ ...usageEvent(2), responseId: "a" });
  (await flushAt(0)).fail("full");
  (await flushAt(1)).commit([{ inputTokens: 4, outputTokens: 0 }]);
  await runTicks();
  expect(committed).toEqual([
    [1, 1, 10, 2],
    [2, 1, 0, 0],
    [2, 0, 4, 0],
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
