import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { maintain, createKeys, type TestEngine, usageIncrement } from "../test-store.ts";
import type { ResponseUsage } from "../../../src/domain/usage.ts";

const dayMs = 86_400_000;
const start = new Date("2026-05-02T12:00:00+09:00").valueOf();

const response = (responseId: string, inputTokens: number, outputTokens: number, keyId = 1): ResponseUsage => ({
  responseId,
  keyId,
  closedAt: start,
  inputTokens,
  outputTokens,
});

const create = (responseId: string, tokens: number, keyId = 1, madeAt?: number): ResponseUsage => ({
  ...response(responseId, tokens, tokens, keyId),
  created: { count: 1, madeAt },
});

const tokens = (count: number) => ({ inputTokens: count, outputTokens: count });

const request = usageIncrement({ keyId: 1, minute: minuteOf(start), inputTokens: 0, outputTokens: 0 });

const countedIds = async ({ engine }: TestEngine) =>
  (await engine.rows<{ ids: number }>(sql`select count(*) as ids from counted_responses`))[0]?.ids;

onEachEngine(({ openTestEngine, openTestStore }) => {
  test("the tokens of a response count once, however often it is reported, and each request counts", async () => {
    await using opened = await openTestEngine(() => start);
    await createKeys(opened.store, ["a"]);
    const { usage, keys } = opened.store;
    expect((await usage.add([request], undefined, [response("one", 10, 2)])).added).toEqual([
      { inputTokens: 10, outputTokens: 2 },
    ]);
    expect((await usage.add([request], undefined, [response("one", 10, 2), response("two", 5, 1)])).added).toEqual([
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
    expect((await usage.add([], undefined, [response("one", 10, 7)])).added).toEqual([
      { inputTokens: 0, outputTokens: 5 },
    ]);
    expect((await usage.add([], undefined, [response("one", 3, 1)])).added).toEqual([
      { inputTokens: 0, outputTokens: 0 },
    ]);
    expect((await usage.add([], undefined, [response("one", 11, 7)])).added).toEqual([
      { inputTokens: 1, outputTokens: 0 },
    ]);
    expect(await usage.sumOfDay("2026-05-02")).toEqual({ requestCount: 0, inputTokens: 11, outputTokens: 7 });
  });

  test("a response counts once for each key that reads it, in one flush too", async () => {
    await using opened = await openTestEngine(() => start);
    await createKeys(opened.store, ["a", "b"]);
    const { usage, keys } = opened.store;
    await usage.add([], undefined, [response("one", 10, 2, 2)]);
    await usage.add([], undefined, [response("one", 10, 2, 1), response("one", 12, 2, 2)]);
    expect((await keys.list()).map(({ inputTokens }) => inputTokens)).toEqual([10, 12]);
  });

  test("a create adds nothing by itself, and a read what it shows above that", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const responses = [create("one", 7), create("background", 0), response("background", 5, 5)];
    expect((await usage.add([], undefined, responses)).added).toEqual([tokens(0), tokens(0), tokens(5)]);
    const reads = [response("one", 7, 7), response("background", 6, 6)];
    expect((await usage.add([], undefined, reads)).added).toEqual([tokens(0), tokens(1)]);
    expect(await usage.sumOfMinutes(0, 100_000_000)).toEqual({ requestCount: 0, ...tokens(6) });
  });

  test("a create that is told of twice is one", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const again = { ...create("one", 7), created: { count: 0 } };
    await usage.add([], undefined, [create("one", 0, 1, 50)]);
    await usage.add([], undefined, [again]);
    expect((await usage.add([], undefined, [response("one", 7, 7)])).added).toEqual([tokens(0)]);
    expect(await usage.listCreators("one")).toEqual([{ keyId: 1, madeAt: 50, backend: null }]);
  });

  test.each<[string, ResponseUsage[]]>([
    ["one key", [create("one", 7, 1), create("one", 7, 1)]],
    ["one key at two times", [create("one", 7, 1, 50), create("one", 7, 1, 51)]],
    ["two keys at unknown times", [create("one", 7, 1), create("one", 7, 2)]],
    ["two keys at one time", [create("one", 7, 1, 50), create("one", 7, 2, 50)]],
    ["three keys, two of them at one time", [1, 2, 3].map((keyId) => create("one", 7, keyId, 50 + (keyId % 2)))],
  ])("each read counts in full if %s created twice under its id", async (_, creates) => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    await usage.add([], undefined, [create("other", 7)]);
    for (const one of creates) await usage.add([], undefined, [one]);
    for (let n = 0; n < 2; n++) {
      const reads = [response("one", 7, 7), response("other", 7, 7)];
      expect((await usage.add([], undefined, reads)).added).toEqual([tokens(7), tokens(0)]);
    }
  });

  test("another key that creates at another time under the same id does not make reads cost more", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    await usage.add([], undefined, [create("one", 7, 1, 50)]);
    await usage.add([], undefined, [create("one", 7, 2, 51)]);
    await usage.add([], undefined, [create("one", 7, 2, 52)]);
    expect((await usage.add([], undefined, [response("one", 7, 7)])).added).toEqual([tokens(0)]);
    expect((await usage.add([], undefined, [response("one", 7, 7, 2)])).added).toEqual([tokens(7)]);
  });

  test("the first create of a key forgets what the key has read under the same id, and later ones do not", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    await usage.add([], undefined, [response("one", 7, 7)]);
    await usage.add([], undefined, [create("one", 0)]);
    expect((await usage.add([], undefined, [response("one", 7, 7)])).added).toEqual([tokens(7)]);
    expect((await usage.add([], undefined, [response("one", 7, 7)])).added).toEqual([tokens(0)]);
  });

  test("only keys that created a response are its creators", async () => {
    await using opened = await openTestStore(() => start);
    const { usage } = opened.store;
    await usage.add([], undefined, [response("one", 7, 7, 3), create("one", 7, 2), create("two", 7, 3, 60)]);
    await usage.add([], undefined, [create("two", 7, 2, 61)]);
    await usage.add([], undefined, [create("two", 7, 2, 62)]);
    expect(await usage.listCreators("one")).toEqual([{ keyId: 2, madeAt: null, backend: null }]);
    const creators = await usage.listCreators("two");
    expect(creators.toSorted((a, b) => a.keyId - b.keyId)).toEqual([
      { keyId: 2, madeAt: 62, backend: null },
      { keyId: 3, madeAt: 60, backend: null },
    ]);
    expect(await usage.listCreators("One")).toEqual([]);
    expect(await usage.listCreators("\0'; drop table keys")).toEqual([]);
  });

  test("a response is at the backend of its latest create that names one, and no read moves it", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const at = async () => (await usage.listCreators("one")).map(({ backend }) => backend);
    const createAt = (backend?: string): ResponseUsage => ({
      ...create("one", 7),
      created: { count: 1, ...(backend && { backend }) },
    });
    await usage.add([], undefined, [createAt()]);
    expect(await at()).toEqual([null]);
    await usage.add([], undefined, [createAt("gpu-a")]);
    expect(await at()).toEqual(["gpu-a"]);
    await usage.add([], undefined, [response("one", 9, 9)]);
    await usage.add([], undefined, [createAt()]);
    expect(await at()).toEqual(["gpu-a"]);
    await usage.add([], undefined, [
      createAt("gpu-b"),
      { ...create("one", 7, 2), created: { count: 1, backend: "gpu-c" } },
    ]);
    expect(new Set(await at())).toEqual(new Set(["gpu-b", "gpu-c"]));
  });

  test("what was counted before keys were stored does not count again, unless a key creates under its id", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    await usage.add([], undefined, [response("one", 7, 7, 0), response("two", 7, 7, 0)]);
    expect((await usage.add([], undefined, [response("one", 8, 8), create("two", 0)])).added).toEqual([
      tokens(1),
      tokens(0),
    ]);
    expect((await usage.add([], undefined, [response("two", 7, 7)])).added).toEqual([tokens(7)]);
  });

  test("a flush that is sent again counts its responses once, and says that it was committed before", async () => {
    await using opened = await openTestEngine(() => start);
    const { usage } = opened.store;
    const flush = { ledger: "one", number: 1 };
    expect((await usage.add([request], flush, [response("one", 10, 2)])).added).toHaveLength(1);
    expect((await usage.add([request], flush, [response("one", 10, 2)])).added).toBeUndefined();
    expect(await usage.sumOfDay("2026-05-02")).toEqual({ requestCount: 1, inputTokens: 10, outputTokens: 2 });
  });

  test("ids are stored as hashes for a month, then deleted a few minutes' worth a round", async () => {
    let now = start;
    await using opened = await openTestEngine(() => now);
    const { usage } = opened.store;
    for (let n = 0; n < 30; n++, now += 60_000) await usage.add([], undefined, [response(`id ${n}`, 10, 2)]);
    const [row] = await opened.engine.rows<{ found: number }>(
      sql`select count(*) as found from counted_responses where id_hash like '%id%'`,
    );
    expect(row).toEqual({ found: 0 });
    now = start + 30 * dayMs;
    expect((await usage.add([], undefined, [response("id 0", 10, 2)])).added).toEqual([
      { inputTokens: 0, outputTokens: 0 },
    ]);
    expect(await countedIds(opened)).toBe(30);
    now = start + 32 * dayMs;
    await usage.add([request]);
    expect(await countedIds(opened)).toBe(30);
    await maintain(opened.store);
    expect(await countedIds(opened)).toBe(25);
    for (let round = 0; round < 10; round++) await maintain(opened.store);
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
