import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { AdmissionResult } from "../../../src/store/limits/contract.ts";
import type { Store } from "../../../src/store/store.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { whyNoPostgres } from "../../support/postgres.ts";
import { openPostgresTestEngine } from "../postgres/postgres-test-store.ts";
import { onEachEngine } from "../each-engine.ts";
import { usageIncrement } from "../test-store.ts";
import type { KeyLimits } from "../../../src/domain/keys.ts";
import type { AdmissionId, SettledAdmission } from "../../../src/domain/admissions.ts";

const start = Date.parse("2026-05-01T12:00:00.000+09:00");
const minuteOf = (ms: number) => Math.floor(ms / 60_000);

onEachEngine(({ openTestStore }) => {
  /** A store with a clock, and one key that asks under changing limits. */
  async function open(limits: Partial<KeyLimits>, startsAt = start) {
    const time = { now: startsAt };
    const opened = await openTestStore(() => time.now);
    let number = 0;
    const idOf = (one: number): AdmissionId => ({ keyId: 1, instance: "a", number: one });
    return {
      opened,
      time,
      store: opened.store,
      idOf,
      async admit(count = 1, tokens = 0, ended: AdmissionId[] = []): Promise<AdmissionResult[]> {
        const requests = Array.from({ length: count }, () => {
          number += 1;
          return { keyId: 1, limits: { ...noLimits, ...limits }, tokens, number };
        });
        return opened.store.limits.admit({ instance: "a", requests, ended });
      },
      settle: (one: number, tokens: number, settled: SettledAdmission[] = [idOf(one)]) =>
        opened.store.usage.add(
          [
            usageIncrement({
              keyId: 1,
              minute: minuteOf(time.now),
              lastClosedAt: time.now,
              inputTokens: tokens,
              outputTokens: 0,
            }),
          ],
          undefined,
          [],
          undefined,
          settled,
        ),
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  }

  const refusals = (results: readonly AdmissionResult[]) => results.map(({ refusedBy }) => refusedBy ?? "admitted");
  type Refusal = ReturnType<typeof refusals>[number];
  const many = (count: number, what: Refusal): Refusal[] => Array.from({ length: count }, () => what);

  test("a flush that only ends admissions gives their places back", async () => {
    await using key = await open({ max_concurrency: 1 });
    await key.admit();
    await key.store.usage.add([]);
    await key.store.usage.add([], undefined, [], undefined, [key.idOf(1)]);
    expect(refusals(await key.admit())).toEqual(["admitted"]);
  });

  test("a limit of requests per minute admits exactly that many in any 60 seconds", async () => {
    await using key = await open({ requests_per_minute: 3 });
    expect(refusals(await key.admit(2))).toEqual(many(2, "admitted"));
    key.time.now += 30_000;
    expect(refusals(await key.admit(3))).toEqual(["admitted", ...many(2, "requests_per_minute")]);
    const [refused] = await key.admit();
    expect(refused?.waitMs).toBe(31_000);
    key.time.now += 30_999;
    expect(refusals(await key.admit())).toEqual(["requests_per_minute"]);
    key.time.now += 1;
    expect(refusals(await key.admit(3))).toEqual(["admitted", "admitted", "requests_per_minute"]);
  });

  test("requests that come together and are too many may come again when the window of their second has passed", async () => {
    await using key = await open({ requests_per_minute: 3 }, start + 400);
    const results = await key.admit(5);
    expect(refusals(results)).toEqual([...many(3, "admitted"), ...many(2, "requests_per_minute")]);
    expect(results.map(({ waitMs }) => waitMs)).toEqual([0, 0, 0, 60_600, 60_600]);
    key.time.now += 60_599;
    expect((await key.admit())[0]).toMatchObject({ refusedBy: "requests_per_minute", waitMs: 1 });
    key.time.now += 1;
    expect(refusals(await key.admit())).toEqual(["admitted"]);
  });

  test("a limit of concurrent requests gives back a place with the end of a request", async () => {
    await using key = await open({ max_concurrency: 2 });
    expect(refusals(await key.admit(3))).toEqual(["admitted", "admitted", "max_concurrency"]);
    expect(refusals(await key.admit(2, 0, [key.idOf(1), key.idOf(3), key.idOf(99)]))).toEqual([
      "admitted",
      "max_concurrency",
    ]);
    await key.settle(2, 5);
    expect(refusals(await key.admit(2))).toEqual(["admitted", "max_concurrency"]);
    // Once more, as after a lost connection.
    await key.settle(2, 5);
    expect(refusals(await key.admit())).toEqual(["max_concurrency"]);
  });

  test("tokens are reserved until they are counted, and then as many as there were", async () => {
    await using key = await open({ tokens_per_minute: 100 });
    expect(refusals(await key.admit(3, 40))).toEqual(["admitted", "admitted", "tokens_per_minute"]);
    await key.settle(1, 10);
    const [result] = await key.admit(1, 50);
    expect([result?.refusedBy, result?.load.minuteTokens, result?.load.reserved]).toEqual([undefined, 10, 90]);
    const [refused] = await key.admit(1, 1);
    expect([refused?.refusedBy, refused?.waitMs]).toEqual(["tokens_per_minute", 61_000]);
    await key.admit(0, 0, [key.idOf(2), key.idOf(4)]);
    key.time.now += 61_000;
    expect(refusals(await key.admit(1, 100))).toEqual(["admitted"]);
  });

  test("the tokens of a request that holds nothing by itself count with its flush, and nothing is given back", async () => {
    await using key = await open({ tokens_per_minute: 100 });
    await key.admit(1, 40);
    await key.settle(2, 10, [{ keyId: 1 }]);
    const [load] = await key.store.limits.listLoads([1]);
    expect(load).toMatchObject({ minuteTokens: 10, dayTokens: 10, reserved: 40 });
  });

  test("requests of one number hold what they reserve together, and as much as they are said to hold later", async () => {
    await using key = await open({ tokens_per_minute: 1_000_000 });
    const { limits } = key.store;
    const request = { keyId: 1, limits: { ...noLimits, tokens_per_minute: 1_000_000 }, number: 1 };
    const batch = {
      instance: "a",
      ended: [],
      requests: [
        { ...request, tokens: 5 },
        { ...request, tokens: 7, spare: 10 },
      ],
    };
    const [, second] = await limits.admit(batch);
    expect(second?.spare).toBe(10);
    const reserved = async () => (await limits.listLoads([1]))[0]?.reserved;
    expect(await reserved()).toBe(5 + 11 * 7);
    const resize = (tokens: number, requests = batch.requests, isRepeated = false) =>
      limits.admit({ ...batch, requests, resized: [{ ...key.idOf(1), tokens }], isRepeated });
    await resize(30, []);
    expect(await reserved()).toBe(30);
    for (const isRepeated of [false, true]) await resize(20, batch.requests, isRepeated);
    expect(await reserved()).toBe(20 + 5 + 11 * 7);
    await resize(0, []);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ reserved: 0, inFlight: 0 });
  });

  test("spare requests are so few that they fit 64 times into what is left", async () => {
    await using key = await open({});
    const { limits } = key.store;
    const own = { ...noLimits, requests_per_minute: 1000, tokens_per_minute: 64_000 };
    const ask = async (number: number, tokens: number) =>
      (
        await limits.admit({
          instance: "a",
          ended: [],
          requests: [{ keyId: 1, limits: own, tokens, number, spare: 64 }],
        })
      )[0];
    // Of 999 requests, 8 are a 64th and 16 are more.
    expect(await ask(1, 1)).toMatchObject({ spare: 8, load: { minuteRequests: 1 } });
    expect(await ask(2, 500)).toMatchObject({ spare: 1, load: { minuteRequests: 10, reserved: 509 } });
    expect(await ask(3, 5000)).toMatchObject({ spare: 0, load: { minuteRequests: 12 } });
    expect((await limits.listLoads([1]))[0]).toMatchObject({ minuteRequests: 12, reserved: 9 + 1000 + 5000 });
  });

  test("requests that never came count no more in their second", async () => {
    await using key = await open({ requests_per_minute: 10 });
    await key.admit(3);
    const unused = [{ keyId: 1, second: Math.floor(key.time.now / 1000), requests: 2 }];
    await key.store.limits.admit({ instance: "a", requests: [], ended: [], unused });
    expect((await key.store.limits.listLoads([1]))[0]).toMatchObject({ minuteRequests: 1 });
  });

  test("requests that come together, before and after their key's limits change, each have the limits they came with", async () => {
    await using key = await open({ tokens_per_day: 100 });
    await key.admit(1, 100);
    await key.settle(1, 100);
    const together = (...limits: Partial<KeyLimits>[]) =>
      key.store.limits.admit({
        instance: "a",
        requests: limits.map((own, at) => ({ keyId: 1, limits: { ...noLimits, ...own }, tokens: 1, number: 10 + at })),
        ended: [],
      });
    const [before, after] = [{ tokens_per_day: 100 }, { requests_per_minute: 100 }];
    expect(refusals(await together(before, after))).toEqual(["tokens_per_day", "admitted"]);
    expect(refusals(await together(after, before))).toEqual(["admitted", "tokens_per_day"]);
  });

  test("a request that reserves more than the limit is admitted while nothing else counts", async () => {
    await using key = await open({ tokens_per_day: 100 });
    expect(refusals(await key.admit(2, 5000))).toEqual(["admitted", "tokens_per_day"]);
    expect((await key.admit(1, 1))[0]).toMatchObject({ refusedBy: "tokens_per_day", waitMs: 1000 });
    expect(refusals(await key.admit(1, 0))).toEqual(["admitted"]);
    await key.settle(1, 101);
    expect((await key.admit(1, 1))[0]).toMatchObject({ refusedBy: "tokens_per_day", waitMs: 12 * 3_600_000 });
  });

  test.each([
    ["tokens_per_day", "2026-05-31T23:59:59.999+09:00"],
    ["tokens_per_month", "2026-05-31T23:59:59.999+09:00"],
    ["tokens_per_month", "2024-02-29T23:59:59.999+09:00"],
  ] as const)("a limit of %s starts anew with the next day or month in Seoul, here after %s", async (name, last) => {
    await using key = await open({ [name]: 100 }, Date.parse(last));
    await key.admit(1, 100);
    await key.settle(1, 100);
    expect((await key.admit(1, 1))[0]).toMatchObject({ refusedBy: name, waitMs: 1 });
    key.time.now += 1;
    expect(refusals(await key.admit(1, 100))).toEqual(["admitted"]);
  });

  test("a month counts all of its days", async () => {
    await using key = await open({ tokens_per_month: 100 }, Date.parse("2026-05-01T00:00:00+09:00"));
    for (let day = 0; day < 10; day++) {
      expect(refusals(await key.admit(1, 10))).toEqual(["admitted"]);
      await key.settle(day + 1, 10);
      key.time.now += 24 * 3_600_000;
    }
    expect(refusals(await key.admit(1, 1))).toEqual(["tokens_per_month"]);
  });

  test("the limit that frees last is the one that is named", async () => {
    await using key = await open({ max_concurrency: 1, requests_per_minute: 1, tokens_per_day: 1 });
    await key.admit(1, 1);
    expect(refusals(await key.admit(1, 1))).toEqual(["tokens_per_day"]);
    expect(refusals(await key.admit(1, 0))).toEqual(["requests_per_minute"]);
  });

  test("a clock that is set back locks out nobody for longer than a minute", async () => {
    await using key = await open({ requests_per_minute: 1 });
    await key.admit();
    key.time.now -= 3_600_000;
    expect(refusals(await key.admit(2))).toEqual(["admitted", "requests_per_minute"]);
  });

  test("what counts is listed, and refusals of today", async () => {
    await using key = await open({ max_concurrency: 1, tokens_per_day: 100 });
    await key.admit(3, 7);
    const listed = async () => (await key.store.limits.listLoads([1, 2]))[0];
    expect(await listed()).toMatchObject({ keyId: 1, inFlight: 1, reserved: 7, dayTokens: 0, refusedToday: 2 });
    await key.settle(1, 9);
    expect(await listed()).toMatchObject({ inFlight: 0, reserved: 0, dayTokens: 9, monthTokens: 9, minuteTokens: 9 });
    key.time.now += 24 * 3_600_000;
    expect(await listed()).toMatchObject({ dayTokens: 0, monthTokens: 9, minuteTokens: 0, refusedToday: 0 });
  });

  test("what a removed instance held is given back, and taken again by its next beat", async () => {
    await using key = await open({ max_concurrency: 1 });
    const { limits } = key.store;
    expect(await limits.beat("a", [])).toEqual([{ id: "a", beat: 1 }]);
    await key.admit();
    expect(await limits.beat("b", [])).toEqual([
      { id: "a", beat: 1 },
      { id: "b", beat: 1 },
    ]);
    expect(await limits.beat("a", [])).toContainEqual({ id: "a", beat: 2 });
    await limits.remove(["a"]);
    expect(await limits.listInstances()).toEqual([{ id: "b", beat: 1 }]);
    expect((await limits.listLoads([1]))[0]?.inFlight).toBe(0);
    await limits.beat("a", [{ ...key.idOf(1), tokens: 3 }]);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ inFlight: 1, reserved: 3 });
  });

  test("what an instance that is not listed holds is given back when another one is listed, and taken again by its first beat", async () => {
    await using key = await open({ max_concurrency: 1 });
    const { limits } = key.store;
    const inFlight = async () => (await limits.listLoads([1]))[0]?.inFlight;
    await key.admit();
    await limits.beat("b", []);
    expect(await inFlight()).toBe(0);
    await limits.beat("a", [{ ...key.idOf(1), tokens: 3 }]);
    expect(await inFlight()).toBe(1);
    await limits.beat("c", []);
    expect(await inFlight()).toBe(1);
  });

  describe("several instances", () => {
    test("together admit exactly what a limit allows", async () => {
      await using first = await openTestStore(() => start);
      await using two = await first.openAnother();
      await using three = await first.openAnother();
      const limits = { ...noLimits, requests_per_minute: 50 };
      const batch = (store: Store, instance: string) =>
        Promise.all(
          Array.from({ length: 30 }, (_, n) =>
            store.limits.admit({ instance, requests: [{ keyId: 1, limits, tokens: 0, number: n }], ended: [] }),
          ),
        );
      const stores = [first.store, two.store, three.store];
      const results = await Promise.all(stores.map((store, index) => batch(store, String(index))));
      expect(refusals(results.flat(2)).filter((one) => one === "admitted")).toHaveLength(50);
    });
  });
});

describe.skipIf(whyNoPostgres !== undefined)("on PostgreSQL", () => {
  test("a request counts when it is admitted, however long it waits for other instances", async () => {
    const time = { now: start };
    await using opened = await openPostgresTestEngine(() => time.now);
    const { engine, store } = opened;
    const waiting = sql`select count(*) as n from pg_locks where locktype = 'advisory' and not granted`;
    const [locked, waited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = engine.transaction(async () => {
      await engine.lock("admissions");
      locked.resolve();
      await waited.promise;
    });
    await locked.promise;
    const limits = { ...noLimits, requests_per_minute: 1 };
    const admitted = store.limits.admit({
      instance: "a",
      requests: [{ keyId: 1, limits, tokens: 0, number: 1 }],
      ended: [],
    });
    await pollUntil(async () => (await engine.rows<{ n: number }>(waiting))[0]?.n === 1);
    time.now += 61_000;
    waited.resolve();
    await other;
    expect((await admitted)[0]?.refusedBy).toBeUndefined();
    expect((await store.limits.listLoads([1]))[0]).toMatchObject({ minuteRequests: 1 });
  });
});
