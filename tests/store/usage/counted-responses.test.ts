import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { minuteOf } from "../../../src/time/seoul.ts";
import type { ResponseUsage } from "../../../src/store/usage/contract.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, type TestEngine, usageIncrement } from "../test-store.ts";

const dayMs = 86_400_000;
const start = new Date("2026-05-02T12:00:00+09:00").valueOf();

const response = (responseId: string, inputTokens: number, outputTokens: number, keyId = 1): ResponseUsage => ({
  responseId,
  keyId,
  closedAt: start,
  inputTokens,
  outputTokens,
});

const request = usageIncrement({ keyId: 1, minute: minuteOf(start), inputTokens: 0, outputTokens: 0 });

const countedIds = async ({ engine }: TestEngine) =>
  (await engine.rows<{ ids: number }>(sql`select count(*) as ids from counted_responses`))[0]?.ids;

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("the tokens of a response count once, however often it is reported, and each request counts", async () => {
    await using opened = await openTestEngine(() => start);
    await createKeys(opened.store, ["a"]);
    const { usage, keys } = opened.store;
    expect(await usage.add([request], undefined, [response("one", 10, 2)])).toEqual([
      { inputTokens: 10, outputTokens: 2 },
    ]);
    expect(await usage.add([request], undefined, [response("one", 10, 2), response("two", 5, 1)])).toEqual([
      { inputTokens: 0, outputTokens: 0 },
      { inputTokens: 5, outputTokens: 1 },
    ]);
    const total = { requestCount: 2, inputTokens: 15, outputTokens: 3 };
    expect(await usage.sumOfKeys()).toEqual(total);
    expect(await usage.sumOfDay("2026-05-02")).toEqual(total);
    expect(await usage.sumOfMinutes(0, 100_000_000)).toEqual(total);
    expect(await keys.list()).toMatchObject([{ lastUsedAt: start }]);
  });

  test("a later report with higher numbers adds the difference, a lower one nothing", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    await usage.add([], undefined, [response("one", 10, 2)]);
    expect(await usage.add([], undefined, [response("one", 10, 7)])).toEqual([{ inputTokens: 0, outputTokens: 5 }]);
    expect(await usage.add([], undefined, [response("one", 3, 1)])).toEqual([{ inputTokens: 0, outputTokens: 0 }]);
    expect(await usage.add([], undefined, [response("one", 11, 7)])).toEqual([{ inputTokens: 1, outputTokens: 0 }]);
    expect(await usage.sumOfDay("2026-05-02")).toEqual({ requestCount: 0, inputTokens: 11, outputTokens: 7 });
  });

  test("a response counts for the key that reports it first", async () => {
    await using opened = await openTestEngine(() => start);
    await createKeys(opened.store, ["a", "b"]);
    const { usage, keys } = opened.store;
    await usage.add([], undefined, [response("one", 10, 2, 2)]);
    await usage.add([], undefined, [response("one", 10, 2, 1)]);
    expect(await keys.list()).toMatchObject([
      { id: 1, inputTokens: 0 },
      { id: 2, inputTokens: 10 },
    ]);
  });

  test("a flush that is sent again counts its responses once, and says that it was committed before", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const flush = { ledger: "one", number: 1 };
    expect(await usage.add([request], flush, [response("one", 10, 2)])).toHaveLength(1);
    expect(await usage.add([request], flush, [response("one", 10, 2)])).toBeUndefined();
    expect(await usage.sumOfDay("2026-05-02")).toEqual({ requestCount: 1, inputTokens: 10, outputTokens: 2 });
  });

  test("ids are stored as hashes for a month, then pruned a few minutes' worth per minute", async () => {
    let now = start;
    await using opened = await openTestEngine(() => now);
    const { usage } = opened.store;
    for (let n = 0; n < 30; n++, now += 60_000) await usage.add([], undefined, [response(`id ${n}`, 10, 2)]);
    const [row] = await opened.engine.rows<{ found: number }>(
      sql`select count(*) as found from counted_responses where id_hash like '%id%'`,
    );
    expect(row).toEqual({ found: 0 });
    now = start + 30 * dayMs;
    expect(await usage.add([], undefined, [response("id 0", 10, 2)])).toEqual([{ inputTokens: 0, outputTokens: 0 }]);
    expect(await countedIds(opened)).toBe(30);
    now = start + 32 * dayMs;
    await usage.add([request]);
    expect(await countedIds(opened)).toBe(25);
    await usage.add([request]);
    expect(await countedIds(opened)).toBe(25);
    for (let n = 0; n < 10; n++, now += 60_000) await usage.add([request]);
    // The one that was reported again is younger.
    expect(await countedIds(opened)).toBe(1);
  });

  test("a response that two stores report at the same moment counts once", async () => {
    await using one = await openTestStore();
    await using two = await one.openAnother();
    await createKeys(one.store, ["a"]);
    for (let round = 0; round < 20; round++) {
      const ids = Array.from({ length: 10 }, (_, n) => `response ${round} ${n}`);
      await Promise.all(
        [one, two, one, two].map(({ store }, n) =>
          store.usage.add(
            [],
            undefined,
            (n % 2 === 0 ? ids : ids.toReversed()).map((id) => response(id, 10 + n, 2)),
          ),
        ),
      );
    }
    expect(await one.store.usage.sumOfKeys()).toEqual({
      requestCount: 0,
      inputTokens: 20 * 10 * 13,
      outputTokens: 400,
    });
  }, 60_000);
});
