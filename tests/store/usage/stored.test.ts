import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { maintain, createKeys, type TestEngine, usageIncrement } from "../test-store.ts";
import type { ResponseUsage } from "../../../src/domain/usage.ts";

const dayMs = 86_400_000;
const start = new Date("2026-05-02T12:00:00+09:00").valueOf();

const read = (responseId: string, inputTokens: number, outputTokens: number, keyId = 1): ResponseUsage => ({
  responseId,
  keyId,
  closedAt: start,
  inputTokens,
  outputTokens,
});
const create = (responseId: string, count: number, keyId = 1): ResponseUsage => ({
  ...read(responseId, count, count, keyId),
  as: "created",
});
const own = (responseId: string, keyId = 1, backend?: string): ResponseUsage => ({
  ...read(responseId, 0, 0, keyId),
  as: "owned",
  backend,
});

const tokens = (count: number) => ({ inputTokens: count, outputTokens: count });
const request = usageIncrement({ keyId: 1, minute: minuteOf(start), inputTokens: 0, outputTokens: 0 });

const countOf = async ({ engine }: TestEngine, table: string): Promise<number | undefined> =>
  (await engine.rows<{ ids: number }>(sql.raw(`select count(*) as ids from ${table}`)))[0]?.ids;

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("the tokens of a response count once for each key, however often it is read, and each request counts", async () => {
    await using opened = await openTestEngine(() => start);
    await createKeys(opened.store, ["a", "b"]);
    const { usage, keys } = opened.store;
    const add = async (...reads: ResponseUsage[]) => (await usage.add([request], undefined, reads)).added;
    expect(await add(read("one", 10, 2))).toEqual([{ inputTokens: 10, outputTokens: 2 }]);
    expect(await add(read("one", 10, 2), read("two", 5, 1))).toEqual([tokens(0), { inputTokens: 5, outputTokens: 1 }]);
    // Higher numbers add the difference, lower ones nothing.
    expect(await add(read("one", 10, 7))).toEqual([{ inputTokens: 0, outputTokens: 5 }]);
    expect(await add(read("one", 3, 1))).toEqual([tokens(0)]);
    expect(await add(read("one", 11, 7), read("one", 12, 2, 2))).toEqual([
      { inputTokens: 1, outputTokens: 0 },
      { inputTokens: 12, outputTokens: 2 },
    ]);
    const total = { requestCount: 5, inputTokens: 28, outputTokens: 10 };
    expect(await usage.sumOfKeys()).toEqual(total);
    expect(await usage.sumOfDay("2026-05-02")).toEqual(total);
    expect(await usage.sumOfMinutes(0, 100_000_000)).toEqual(total);
    expect((await keys.list()).map(({ inputTokens }) => inputTokens)).toEqual([16, 12]);
  });

  test("a create adds nothing by itself, and a read what it shows above the latest", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const add = async (...responses: ResponseUsage[]) => (await usage.add([], undefined, responses)).added;
    expect(await add(create("one", 7), create("later", 0), read("later", 5, 5))).toEqual([0, 0, 5].map(tokens));
    expect(await add(read("one", 7, 7), read("later", 6, 6))).toEqual([0, 1].map(tokens));
    // Another one under the same id.
    await add(create("one", 0), create("one", 9, 2));
    expect(await add(read("one", 7, 7), read("one", 9, 9, 2))).toEqual([7, 0].map(tokens));
  });

  test("the first key that has an id keeps it, and moves it with its own creates alone", async () => {
    let now = start;
    await using opened = await openTestStore(() => now);
    const { usage } = opened.store;
    const note = (...notes: ResponseUsage[]) => usage.add([], undefined, notes);
    await note(own("one", 2), own("two", 3, "gpu-a"), read("three", 1, 1));
    await note(own("two", 2, "gpu-b"), own("one", 3));
    const ids = ["one", "two", "three", "One", "\0'; drop table keys"];
    const found = async () => (await usage.findOwners(ids)).map((one) => one && [one.keyId, one.backend, one.usedAt]);
    expect(await found()).toEqual([[2, null, start], [3, "gpu-a", start], undefined, undefined, undefined]);
    expect([await usage.countOwned(2), await usage.countOwned(3), await usage.countOwned(4)]).toEqual([1, 1, 0]);
    now += dayMs - 1;
    await note(own("one", 2), own("two", 3, "gpu-c"));
    expect((await found()).slice(0, 2)).toEqual([
      [2, null, start],
      [3, "gpu-c", now],
    ]);
    now += 1;
    await note(own("one", 2), own("two", 3));
    expect((await found()).slice(0, 2)).toEqual([
      [2, null, now],
      [3, "gpu-c", now],
    ]);
  });

  test("a flush that is sent again counts its responses once, and says that it was committed before", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const flush = { ledger: "one", number: 1 };
    expect((await usage.add([request], flush, [read("one", 10, 2)])).added).toHaveLength(1);
    expect((await usage.add([request], flush, [read("one", 10, 2)])).added).toBeUndefined();
    expect(await usage.sumOfDay("2026-05-02")).toEqual({ requestCount: 1, inputTokens: 10, outputTokens: 2 });
  });

  test("ids are kept as hashes: counts for a month, owners for 400 days after their last use", async () => {
    let now = start;
    await using opened = await openTestEngine(() => now);
    const { usage } = opened.store;
    for (let n = 0; n < 30; n++, now += 60_000)
      await usage.add([], undefined, [read(`id ${n}`, 10, 2), own(`id ${n}`)]);
    for (const table of ["counted_responses", "owned"])
      expect(await countOf(opened, `${table} where id_hash like '%id%'`)).toBe(0);
    now = start + 30 * dayMs;
    expect((await usage.add([], undefined, [read("id 0", 10, 2), own("id 0")])).added).toEqual([tokens(0), tokens(0)]);
    now = start + 32 * dayMs;
    for (let round = 0; round < 10; round++) await maintain(opened.store);
    // A few minutes' worth a round; the one that was read again is younger.
    expect([await countOf(opened, "counted_responses"), await countOf(opened, "owned")]).toEqual([1, 30]);
    now = start + 401 * dayMs;
    await maintain(opened.store);
    expect(await countOf(opened, "owned")).toBe(25);
    for (let round = 0; round < 10; round++) await maintain(opened.store);
    expect(await usage.findOwners(["id 0", "id 1"])).toMatchObject([{ keyId: 1 }, undefined]);
  });

  test("a response that two stores report, or get, at the same moment counts once and has one owner", async () => {
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
            (n % 2 === 0 ? ids : ids.toReversed()).flatMap((id) => [read(id, 10 + n, 2), own(id, 1 + (n % 2))]),
          ),
        ),
      );
      expect((await one.store.usage.findOwners(ids)).every((owner) => owner !== undefined)).toBe(true);
    }
    expect((await one.store.usage.countOwned(1)) + (await one.store.usage.countOwned(2))).toBe(200);
    expect(await one.store.usage.sumOfKeys()).toEqual({
      requestCount: 0,
      inputTokens: 20 * 10 * 13,
      outputTokens: 400,
    });
  });
});
