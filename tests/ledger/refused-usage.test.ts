import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { loggedRecord } from "../store/logged-requests.ts";
import { runTicks, startLedger, usageEvent } from "./start-ledger.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

/** Commits every flush but those with usage of key 13. */
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
  void ledger.record({ ...usageEvent(11), admission, request: loggedRecord({ keyId: 11 }) });
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

test("the tokens of a create that the database refuses are kept once", async () => {
  const { ledger, entries, flushAt } = startLedger();
  const created = { id: "a", madeAt: undefined, isNew: true, reported: { inputTokens: 10, outputTokens: 2 } };
  void ledger.record({ ...usageEvent(13), created });
  for (let flush = 0; flush < 3; flush++) (await flushAt(flush)).reject();
  await runTicks();
  expect(entries).toMatchObject([{ keyId: 13, requestCount: 1, inputTokens: 10, outputTokens: 2 }]);
});
