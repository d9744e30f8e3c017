import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { noLimits } from "../../../src/store/keys/rules.ts";
import type { Lease, LeaseRequest } from "../../../src/store/limits/contract.ts";
import { judge, type Judged, noLoad } from "../../../src/store/limits/judge.ts";
import { pollUntil } from "../../support/poll-until.ts";
import { createRandom, type Random } from "../../support/random.ts";
import { whyNoPostgres } from "../../support/postgres.ts";
import { openPostgresTestEngine } from "../postgres/postgres-test-store.ts";
import { onEachEngine } from "../each-engine.ts";
import { openTestStore as openSqliteTestStore, usageAt } from "../test-store.ts";
import type { KeyLimits } from "../../../src/domain/keys.ts";
import { limitKinds, perLimit } from "../../../src/domain/limits.ts";
import { createTestProcess, type TestResult } from "./test-process.ts";

const start = Date.parse("2026-05-01T12:00:00.000+09:00");

onEachEngine(({ openTestStore }) => {
  /** A store with a clock, and one key that asks under changing limits. */
  async function open(limits: Partial<KeyLimits>, startsAt = start) {
    const time = { now: startsAt };
    const opened = await openTestStore(() => time.now);
    const process = createTestProcess(opened.store.limits);
    const own = { ...noLimits, ...limits };
    /** A response whose tokens are counted. */
    const count = (tokens: number, instance = process.instance) =>
      opened.store.usage.add(
        [usageAt(1, time.now, { inputTokens: tokens, outputTokens: 0 })],
        undefined,
        [],
        undefined,
        [{ subjects: [1], instance }],
      );
    return {
      opened,
      time,
      store: opened.store,
      process,
      limits: own,
      admit: (requests = 1, tokens = 0) =>
        process.admit({ limits: own, requests: Array.from({ length: requests }, () => tokens) }),
      count,
      /** A request that reserved tokens ends, with others that are counted. */
      async settle(reserved: number, tokens: number) {
        await count(tokens);
        await process.end(own, reserved);
      },
      [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
    };
  }

  const refusals = (results: readonly TestResult[]) => results.map(({ refusedBy }) => refusedBy ?? "admitted");
  type Refusal = ReturnType<typeof refusals>[number];
  const many = (count: number, what: Refusal): Refusal[] => Array.from({ length: count }, () => what);

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

  test("what is held is absolute: a repeated batch takes no place twice, and one that comes late none at all", async () => {
    await using key = await open({ max_concurrency: 4, tokens_per_minute: 100 });
    const { limits } = key.store;
    const subject = { id: 1, limits: key.limits, tokens: 10, corrections: [], refused: 0 };
    const take = (version: number, places = 1) =>
      limits.take({
        instance: "a",
        version,
        requests: [{ subjects: [{ ...subject, places }], requests: [{ tokens: 5 }], ahead: 0 }],
      });
    await take(2);
    await take(3);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ inFlight: 2, reserved: 15 });
    await take(1, 3);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ inFlight: 2, reserved: 15 });
  });

  test("tokens are reserved until they are counted, and then as many as there were", async () => {
    await using key = await open({ tokens_per_minute: 100 });
    expect(refusals(await key.admit(3, 40))).toEqual(["admitted", "admitted", "tokens_per_minute"]);
    await key.settle(40, 10);
    const [result] = await key.admit(1, 50);
    expect([result?.refusedBy, result?.load.minuteTokens, result?.load.reserved]).toEqual([undefined, 10, 90]);
    const [refused] = await key.admit(1, 1);
    expect([refused?.refusedBy, refused?.waitMs]).toEqual(["tokens_per_minute", 61_000]);
    await key.process.end(key.limits, 40);
    await key.process.end(key.limits, 50);
    key.time.now += 61_000;
    expect(refusals(await key.admit(1, 100))).toEqual(["admitted"]);
  });

  test("a flush counts tokens, and gives nothing back: that is for the process to say", async () => {
    await using key = await open({ tokens_per_minute: 100 });
    await key.admit(1, 40);
    await key.count(10);
    const [load] = await key.store.limits.listLoads([1]);
    expect(load).toMatchObject({ minuteTokens: 10, dayTokens: 10, inFlight: 1, reserved: 40 });
  });

  test("what is taken ahead is so little that it fits 64 times into what is left", async () => {
    await using key = await open({});
    const limits = { ...noLimits, requests_per_minute: 1000, tokens_per_minute: 64_000 };
    const ask = async (tokens: number) => (await key.process.admit({ limits, requests: [tokens], ahead: 64 }))[0];
    // Of 999 requests, 8 are a 64th and 16 are more.
    expect(await ask(1)).toMatchObject({ ahead: 8, load: { minuteRequests: 1 } });
    expect((await key.store.limits.listLoads([1]))[0]).toMatchObject({ minuteRequests: 9, inFlight: 1, reserved: 9 });
    expect(await ask(500)).toMatchObject({ ahead: 1, load: { minuteRequests: 10, reserved: 501 } });
    expect(await ask(5000)).toMatchObject({ ahead: 0, load: { minuteRequests: 12 } });
    expect((await key.store.limits.listLoads([1]))[0]).toMatchObject({ minuteRequests: 12, reserved: 5501 });
  });

  test("requests that never came count no more in their second, and those that the database did not know of do", async () => {
    await using key = await open({ requests_per_minute: 10 });
    await key.admit(3);
    const second = Math.floor(key.time.now / 1000);
    const corrections = [
      { second, requests: -3 },
      { second: second - 1, requests: 5 },
      { second, requests: 1 },
    ];
    await key.process.admit({ limits: key.limits, requests: [], corrections });
    expect((await key.store.limits.listLoads([1]))[0]).toMatchObject({ minuteRequests: 6 });
    expect(refusals(await key.admit(5))).toEqual([...many(4, "admitted"), "requests_per_minute"]);
  });

  test("a request that reserves more than the limit is admitted while nothing else counts", async () => {
    await using key = await open({ tokens_per_day: 100 });
    expect(refusals(await key.admit(2, 5000))).toEqual(["admitted", "tokens_per_day"]);
    expect((await key.admit(1, 1))[0]).toMatchObject({ refusedBy: "tokens_per_day", waitMs: 1000 });
    expect(refusals(await key.admit(1, 0))).toEqual(["admitted"]);
    await key.settle(5000, 101);
    expect((await key.admit(1, 1))[0]).toMatchObject({ refusedBy: "tokens_per_day", waitMs: 12 * 3_600_000 });
  });

  test.each([
    ["tokens_per_day", "2026-05-31T23:59:59.999+09:00"],
    // A Sunday; the month ends on the day after.
    ["tokens_per_week", "2026-08-30T23:59:59.999+09:00"],
    ["tokens_per_month", "2026-05-31T23:59:59.999+09:00"],
    ["tokens_per_month", "2024-02-29T23:59:59.999+09:00"],
  ] as const)(
    "a limit of %s starts anew with the next day, Monday or month in Seoul, here after %s",
    async (name, last) => {
      await using key = await open({ [name]: 100 }, Date.parse(last));
      await key.admit(1, 100);
      await key.settle(100, 100);
      expect((await key.admit(1, 1))[0]).toMatchObject({ refusedBy: name, waitMs: 1 });
      key.time.now += 1;
      expect(refusals(await key.admit(1, 100))).toEqual(["admitted"]);
    },
  );

  test("a week counts all of its days, those of the month before too", async () => {
    // A Monday.
    await using key = await open({ tokens_per_week: 60 }, Date.parse("2026-06-29T00:00:00+09:00"));
    for (let day = 0; day < 7; day++) {
      expect(refusals(await key.admit(1, 10))).toEqual([day < 6 ? "admitted" : "tokens_per_week"]);
      if (day < 6) await key.settle(10, 10);
      key.time.now += 24 * 3_600_000;
    }
    expect(refusals(await key.admit(1, 1))).toEqual(["admitted"]);
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
    await key.settle(7, 9);
    expect(await listed()).toMatchObject({ inFlight: 0, reserved: 0, dayTokens: 9, monthTokens: 9, minuteTokens: 9 });
    key.time.now += 24 * 3_600_000;
    expect(await listed()).toMatchObject({ dayTokens: 0, monthTokens: 9, minuteTokens: 0, refusedToday: 0 });
  });

  test("what a removed instance held is given back, its tokens are charged, and it may take it again", async () => {
    await using key = await open({ max_concurrency: 1, tokens_per_minute: 100 });
    const { limits } = key.store;
    expect(await limits.beat("a")).toEqual([{ id: "a", beat: 1 }]);
    await key.admit(1, 3);
    expect(await limits.beat("b")).toEqual([
      { id: "a", beat: 1 },
      { id: "b", beat: 1 },
    ]);
    expect(await limits.beat("a")).toContainEqual({ id: "a", beat: 2 });
    await limits.remove(["a"]);
    expect(await limits.listInstances()).toEqual([{ id: "b", beat: 1 }]);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ inFlight: 0, reserved: 0, minuteTokens: 3 });
    expect(await limits.beat("a")).toContainEqual({ id: "a", beat: 1 });
    await key.process.write(key.limits);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ inFlight: 1, reserved: 3 });
    // A minute after the process died, which was some time before the others noticed.
    key.time.now += 46_000;
    expect((await limits.listLoads([1]))[0]).toMatchObject({ minuteTokens: 0 });
  });

  test("what an instance that is not listed holds is given back when another one is listed, and kept once it is", async () => {
    await using key = await open({ max_concurrency: 1 });
    const { limits } = key.store;
    const inFlight = async () => (await limits.listLoads([1]))[0]?.inFlight;
    await key.admit();
    await limits.beat("b");
    expect(await inFlight()).toBe(0);
    await limits.beat("a");
    await key.process.write(key.limits);
    await limits.beat("c");
    expect(await inFlight()).toBe(1);
  });
});

const randomLimits = (random: Random, mostTokens: number): KeyLimits =>
  perLimit((name) => {
    if (random.below(2) === 0) return null;
    return 1 + random.below(limitKinds[name].counts === "tokens" ? mostTokens : 8);
  });

const nothingHeld = { places: 0, tokens: 0, corrections: [], refused: 0 };

/** What of the requests a lease admits. */
const judgeLease = ({ subjects }: Lease, asked: Pick<LeaseRequest, "subjects" | "requests">): Judged[] => {
  const bounds = asked.subjects.map(({ limits }, at) => ({ limits, load: subjects[at]?.load ?? noLoad }));
  return judge(bounds, asked.requests);
};

describe.skipIf(whyNoPostgres !== undefined)("on PostgreSQL", () => {
  test("the database's clock decides, after the wait for other instances, whatever the clocks of the instances", async () => {
    // An hour behind.
    await using opened = await openPostgresTestEngine(() => Date.now() - 3_600_000, { hasClock: true });
    const { engine, store } = opened;
    const waiting = sql`select count(*) as n from pg_locks where locktype = 'advisory' and not granted`;
    const [locked, waited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = engine.transaction(async () => {
      await engine.rows(sql`select pg_advisory_xact_lock(7655444, 1) is null as locked`);
      locked.resolve();
      await waited.promise;
    });
    await locked.promise;
    const limits = { ...noLimits, requests_per_minute: 1, tokens_per_minute: 10 };
    const taken = store.limits.take({
      instance: "a",
      version: 1,
      requests: [{ subjects: [{ ...nothingHeld, id: 1, limits }], requests: [{ tokens: 7 }], ahead: 0 }],
    });
    await pollUntil(async () => (await engine.rows<{ n: number }>(waiting))[0]?.n === 1);
    const releasedAt = Date.now();
    waited.resolve();
    await other;
    expect((await taken)[0]?.now).toBeGreaterThanOrEqual(releasedAt);
    await store.usage.add([usageAt(1, 60_000, { inputTokens: 4, outputTokens: 0 })], undefined, [], undefined, [
      { subjects: [1], instance: "a" },
    ]);
    const seconds = await engine.rows<{ second: number }>(sql`select second from lease_seconds`);
    for (const { second } of seconds) expect(Math.abs(second * 1000 - Date.now())).toBeLessThan(5000);
    expect(seconds).toHaveLength(2);
  });

  test("what a process reserved that died is charged once, though two others give it back at once", async () => {
    await using opened = await openPostgresTestEngine(() => start);
    const { engine, store } = opened;
    await createTestProcess(store.limits, "dead").admit({
      limits: { ...noLimits, tokens_per_minute: 99 },
      requests: [40],
    });
    const [locked, waited] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const other = engine.transaction(async () => {
      await engine.rows(sql`lock table lease_seconds in exclusive mode`);
      locked.resolve();
      await waited.promise;
    });
    await locked.promise;
    const removed = [1, 2].map(() => store.limits.remove(["dead"]));
    const waiting = sql`select count(*) as n from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`;
    await pollUntil(async () => (await engine.rows<{ n: number }>(waiting))[0]?.n === 2);
    waited.resolve();
    await Promise.all([other, ...removed]);
    expect((await store.limits.listLoads([1]))[0]).toMatchObject({ reserved: 0, minuteTokens: 40 });
  });

  test("requests of keys in teams are granted as on SQLite, those of one batch one after the other", async () => {
    await using postgres = await openPostgresTestEngine(() => start);
    await using sqlite = await openSqliteTestStore(() => start);
    const stores = [postgres.store, sqlite.store];
    const random = createRandom(11);
    const counts = { admitted: 0, less: 0, key: 0, team: 0, ahead: 0 };
    const held = new Map<number, { places: number; tokens: number }>();
    for (let version = 1; version <= 60; version++) {
      const counted = [1, 2, 3].map((keyId) => usageAt(keyId, start, { teamId: 1 + random.below(2), inputTokens: 3 }));
      const settled = [{ subjects: [1, 2, 3, -1, -2], instance: "other" }];
      for (const { usage } of stores) await usage.add(counted, undefined, [], undefined, settled);
      // A subject has the same limits in all requests of a batch.
      const limits = new Map<number, KeyLimits>();
      const subjectOf = (id: number): LeaseRequest["subjects"][number] => {
        const own = limits.get(id) ?? randomLimits(random, 300 + 40 * version);
        limits.set(id, own);
        const refused = random.below(2);
        const corrections = [{ second: Math.floor(start / 1000), requests: random.below(2) }];
        return { id, limits: own, ...(held.get(id) ?? { places: 0, tokens: 0 }), refused, corrections };
      };
      const requests = Array.from({ length: 1 + random.below(4) }, () => ({
        subjects: random.pick([[1], [2, -1], [3, -1], [-1], [2, -2], [-2]]).map(subjectOf),
        requests: Array.from({ length: random.below(4) }, () => ({
          tokens: random.pick([0, 5, 40, 200]),
          leastTokens: random.below(2) === 0 ? undefined : 1 + random.below(5),
        })),
        ahead: random.below(2) * 4,
      }));
      const [leases = [], expected = []] = await Promise.all(
        stores.map((store) => store.limits.take({ instance: "a", version, requests })),
      );
      expect(leases).toEqual(expected);
      for (const [index, lease] of leases.entries()) {
        counts.ahead += lease.ahead;
        const judged = judgeLease(lease, requests[index] ?? { subjects: [], requests: [] });
        for (const [asked, { refusedBy, at, tokens }] of judged.entries()) {
          const refuser = requests[index]?.subjects[at]?.id ?? 0;
          const isLess = tokens !== requests[index]?.requests[asked]?.tokens;
          counts[refusedBy !== undefined ? (refuser < 0 ? "team" : "key") : isLess ? "less" : "admitted"] += 1;
          for (const { id } of refusedBy === undefined ? (requests[index]?.subjects ?? []) : []) {
            const { places, tokens: reserved } = held.get(id) ?? { places: 0, tokens: 0 };
            held.set(id, { places: places + 1, tokens: reserved + tokens });
          }
        }
      }
      const loads = await Promise.all(stores.map((store) => store.limits.listLoads([1, 2, 3, -1, -2])));
      expect(loads[0]).toEqual(loads[1] ?? []);
      // Some end.
      for (const [id] of held) if (random.below(3) === 0) held.delete(id);
    }
    for (const count of Object.values(counts)) expect(count).toBeGreaterThan(5);
  });
});
