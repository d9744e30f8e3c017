import { expect, test } from "bun:test";
import { runTicks, startLedger, usageEvent } from "./start-ledger.ts";

test("what the database refuses is logged with all its fields, is not observed as counted, and holds nothing up", async () => {
  const observed: number[] = [];
  const { ledger, entries, flushAt } = startLedger({
    observer: {
      committed: (_, counts) => observed.push(...counts.map(({ keyId }) => keyId)),
      commitFailed: () => {},
    },
  });
  const recorded = Promise.all([11, 13].map((keyId) => ledger.record(usageEvent(keyId))));
  void ledger.record({ ...usageEvent(13), responseId: "a" });
  const first = await flushAt(0);
  const increments = first.increments.filter(({ keyId }) => keyId === 13);
  first.commit([], [{ reason: "no", increments, rows: 2 }]);
  await recorded;
  expect(observed).toEqual([11]);
  expect(ledger.refusedRequests()).toBe(2);
  expect(ledger.droppedRequests()).toBe(2);
  expect(ledger.waiting()).toMatchObject({ requests: 0, keys: 0 });
  expect(entries).toEqual([
    expect.objectContaining({
      level: "error",
      message: "Database refuses usage; it is not counted",
      reason: "no",
      keyId: 13,
      minute: 2,
      requestCount: 2,
      inputTokens: 10,
      outputTokens: 2,
    }),
  ]);

  void ledger.record(usageEvent(13));
  (await flushAt(1)).commit();
  await runTicks();
  expect(observed).toEqual([11, 13]);
  expect(ledger.refusedRequests()).toBe(2);
  expect(await ledger.close()).toBe(true);
});
