import { expect, test } from "bun:test";
import { createLedger } from "../../../src/ledger/ledger.ts";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, memoryLog, type TestStore, usageIncrement } from "../test-store.ts";
import type { UsageEvent } from "../../../src/domain/usage-event.ts";

const start = new Date("2026-05-02T12:00:00+09:00").valueOf();
const minute = minuteOf(start);

/** Commits each event by itself, as a ledger does. */
async function commit({ store }: TestStore, ...events: Partial<UsageEvent>[]): Promise<void> {
  for (const event of events) {
    const ledger = createLedger({ store: store.usage, clock: () => start, log: memoryLog().log });
    const admission = { subjects: [1], instance: "a" };
    await ledger.record({ keyId: 1, closedAt: start, inputTokens: 0, outputTokens: 0, admission, ...event });
    await ledger.close();
  }
}

async function stateOf({ store }: TestStore) {
  const [load] = await store.limits.listLoads([1]);
  const [key] = await store.keys.list();
  return {
    minute: load?.minuteTokens,
    day: load?.dayTokens,
    month: load?.monthTokens,
    estimated: key?.estimatedTokens,
    counted: await store.usage.sumOfDay("2026-05-02"),
  };
}

onEachEngine(({ openTestStore }) => {
  test("what is charged beside the counts counts against the limits, and in no report", async () => {
    await using opened = await openTestStore(() => start);
    await createKeys(opened.store, ["a"]);
    await commit(
      opened,
      { inputTokens: 1, outputTokens: 5, besideTokens: 44 },
      { besideTokens: 20, estimatedTokens: 20 },
    );
    expect(await stateOf(opened)).toEqual({
      minute: 70,
      day: 70,
      month: 70,
      estimated: 20,
      counted: { requestCount: 2, inputTokens: 1, outputTokens: 5 },
    });
    const [today] = await opened.store.limits.listDays(1, 0, 100_000);
    expect(today).toMatchObject({ inputTokens: 1, outputTokens: 5, estimatedTokens: 20 });
  });

  test("of what counts against limits of a day, a week and a month, the estimates of that time are told apart", async () => {
    await using opened = await openTestStore(() => start);
    await createKeys(opened.store, ["a", "b"]);
    const lastMonth = start - 3 * 24 * 3_600_000;
    const estimate = { outputTokens: 5, besideTokens: 90, estimatedTokens: 90 };
    await commit(
      opened,
      { ...estimate, closedAt: lastMonth },
      { ...estimate, closedAt: start - 24 * 3_600_000 },
      estimate,
    );
    const [load, other] = await opened.store.limits.listLoads([1, 2]);
    const { dayTokens, weekTokens, monthTokens, estimated } = load ?? {};
    expect([dayTokens, weekTokens, monthTokens]).toEqual([95, 285, 190]);
    expect(estimated).toEqual({ day: 90, week: 270, month: 180 });
    expect(other?.estimated).toEqual({ day: 0, week: 0, month: 0 });
  });

  test("a charge without a request is written too", async () => {
    await using opened = await openTestStore(() => start);
    await createKeys(opened.store, ["a"]);
    await commit(opened, { requestCount: 0, besideTokens: 7, estimatedTokens: 7 });
    expect(await stateOf(opened)).toMatchObject({
      minute: 7,
      day: 7,
      counted: { requestCount: 0, inputTokens: 0, outputTokens: 0 },
    });
  });

  test("the counts of minutes, hours and models know nothing of it", async () => {
    await using opened = await openTestStore(() => start);
    const one = usageIncrement({ keyId: 1, minute, inputTokens: 3, outputTokens: 4 });
    await opened.store.usage.add([{ ...one, besideTokens: 9, estimatedTokens: 9 }]);
    expect(await opened.store.usage.sumOfMinutes(minute, minute + 1)).toEqual({
      requestCount: 1,
      inputTokens: 3,
      outputTokens: 4,
    });
  });
});
