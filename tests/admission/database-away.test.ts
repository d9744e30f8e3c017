import { describe, expect, test } from "bun:test";
import { createAdmissions } from "../../src/admission/admission.ts";
import { newLease } from "../../src/admission/process-leases.ts";
import { shareOf } from "../../src/admission/degraded.ts";
import type { AdmissionsOptions } from "../../src/admission/process-leases.ts";
import { noLimits } from "../../src/store/keys/rules.ts";
import type { LimitStore } from "../../src/store/limits/contract.ts";
import { decide, noLoad } from "../../src/store/limits/judge.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { memoryLog } from "../store/test-store.ts";
import { pollUntil } from "../support/poll-until.ts";
import type { Admission } from "../../src/domain/admissions.ts";
import type { KeyLimits } from "../../src/domain/keys.ts";

const start = Date.parse("2026-05-30T20:00:00+09:00");

interface Circumstances {
  /** Whether the process knows what others used. */
  isKnown?: boolean;
  /** Since it last knew. */
  afterMs?: number;
  /** What others have reserved. */
  reserved?: number;
  tokens?: number;
}

describe("the share of a process", () => {
  const known = {
    inFlight: 2,
    reserved: 0,
    minuteRequests: 18,
    minuteTokens: 900,
    dayTokens: 1000,
    weekTokens: 1000,
    monthTokens: 1000,
  };

  /** How many requests one process admits by itself. */
  function admitted(limits: Partial<KeyLimits>, instances: number, more: Circumstances = {}): number {
    const { isKnown = true, afterMs = 1000, reserved = 0, tokens = 0 } = more;
    const own = { ...noLimits, ...limits };
    const lease = newLease(1);
    if (isKnown) lease.known = { others: { ...known, reserved }, at: start };
    const now = start + afterMs;
    const circumstances = { now, instances, deadAfterMs: 15_000 };
    for (let count = 0; count < 1000; count++) {
      if (decide([shareOf({ lease, limits: own }, circumstances)], { tokens }).refusedBy !== undefined) return count;
      lease.places += 1;
      lease.tokens += tokens;
      lease.corrections.push({ second: Math.floor(now / 1000), requests: 1 });
    }
    return Infinity;
  }

  const rows: [what: string, expected: number, limits: Partial<KeyLimits>, instances: number, more?: Circumstances][] =
    [
      ["of what was left", 2, { requests_per_minute: 20 }, 1],
      ["rounded up, so that it is never nothing", 1, { requests_per_minute: 20 }, 3],
      ["of nothing is nothing", 0, { requests_per_minute: 18 }, 3],
      ["of the whole limit, once the minute is over", 7, { requests_per_minute: 20 }, 3, { afterMs: 61_000 }],
      ["of the whole limit, for a key that was never seen", 7, { requests_per_minute: 20 }, 3, { isKnown: false }],
      ["of the places", 2, { max_concurrency: 4 }, 2],
      ["of the places, but none that others have", 1, { max_concurrency: 3 }, 2],
      ["of the places that others had a lease ago", 2, { max_concurrency: 3 }, 2, { afterMs: 15_000 }],
      ["of one place while others have it", 0, { max_concurrency: 1 }, 2, { afterMs: 14_000 }],
      ["of one place, once they cannot have it any more", 1, { max_concurrency: 1 }, 2, { afterMs: 15_000 }],
      [
        "of what was counted for nobody, where it knows of none",
        1,
        { max_concurrency: 9 },
        Infinity,
        { isKnown: false },
      ],
      ["of requests, where it knows of none", 1, { requests_per_minute: 20 }, Infinity, { isKnown: false }],
      ["of tokens, where it knows of none", 1, { tokens_per_day: 1000 }, Infinity, { isKnown: false, tokens: 10 }],
      ["of tokens that others have not reserved", 2, { tokens_per_minute: 1000 }, 2, { tokens: 10, reserved: 80 }],
      [
        "of tokens that others reserved a lease ago",
        5,
        { tokens_per_minute: 1000 },
        2,
        { tokens: 10, reserved: 80, afterMs: 15_000 },
      ],
      ["of the tokens of a minute", 5, { tokens_per_minute: 1000 }, 2, { tokens: 10 }],
      [
        "of the tokens of a day, which go on counting",
        10,
        { tokens_per_day: 1200 },
        2,
        { tokens: 10, afterMs: 61_000 },
      ],
      ["of a new day", 60, { tokens_per_day: 1200 }, 2, { tokens: 10, afterMs: 4 * 3_600_000 }],
      ["of a month", 10, { tokens_per_month: 1200 }, 2, { tokens: 10, afterMs: 4 * 3_600_000 }],
    ];
  for (const [what, expected, limits, instances, more] of rows) {
    test(`is its part ${what}: ${expected}`, () => expect(admitted(limits, instances, more)).toBe(expected));
  }
});

/** Over a store that can be made to fail, or to hang. */
function open(store: LimitStore, more: Partial<AdmissionsOptions> = {}) {
  const { log, entries } = memoryLog();
  let state: "well" | "failing" | "hanging" = "well";
  let released = Promise.withResolvers<void>();
  const through = async <T>(work: () => Promise<T>): Promise<T> => {
    if (state === "failing") throw new Error("the disk is full");
    if (state === "hanging") await released.promise;
    return work();
  };
  const admissions = createAdmissions({
    store: {
      ...store,
      take: (batch) => through(() => store.take(batch)),
      beat: (instance) => through(() => store.beat(instance)),
    },
    monotonic: () => performance.now(),
    clock: Date.now,
    log,
    beatMs: 20,
    waitLimitMs: 100,
    ...more,
  });
  return {
    ...admissions,
    entries,
    set(next: typeof state) {
      state = next;
      if (next === "hanging") released = Promise.withResolvers();
      else released.resolve();
    },
  };
}

const away: LimitStore = {
  take: () => Promise.reject(new Error("the disk is full")),
  beat: () => Promise.reject(new Error("the disk is full")),
  listInstances: async () => [],
  remove: async () => {},
  listLoads: async () => [],
  listNear: async () => [],
  listNotified: async () => [],
  listDays: async () => [],
};

/** It lists this process, and takes nothing. */
const listing: LimitStore = { ...away, beat: async (id) => [{ id, beat: 2 }] };

const admit = (admissions: Pick<ReturnType<typeof open>, "admit">, limits: KeyLimits, count: number, tokens = 0) =>
  Promise.all(
    Array.from({ length: count }, async (): Promise<Admission> => admissions.admit([{ id: 1, limits }], tokens)),
  );
const countAdmitted = (results: readonly Admission[]): number =>
  results.filter(({ refusedBy }) => refusedBy === undefined).length;

onEachEngine(({ openTestStore }) => {
  test("while the database is away a process enforces its share, and what it admits is added later", async () => {
    await using opened = await openTestStore();
    const { limits } = opened.store;
    const admissions = open(limits, { waitLimitMs: 500 });
    const rules = { ...noLimits, requests_per_minute: 20, tokens_per_day: 100_000 };
    // Two processes live.
    await limits.beat("other");
    expect(countAdmitted(await admit(admissions, rules, 4, 10))).toBe(4);
    await pollUntil(async () => (await limits.listInstances()).length === 2);
    admissions.set("failing");
    const first = admit(admissions, rules, 1, 10);
    await pollUntil(() => admissions.isDegraded());
    // It knows 4 of 20: of the other 16, it has 8.
    const results = [...(await first), ...(await admit(admissions, rules, 19, 10))];
    expect(countAdmitted(results)).toBe(8);
    expect(new Set(results.map(({ refusedBy }) => refusedBy))).toEqual(new Set([undefined, "requests_per_minute"]));
    admissions.set("well");
    await pollUntil(() => !admissions.isDegraded(), 5000);
    await pollUntil(async () => {
      const [load] = await limits.listLoads([1]);
      return load?.minuteRequests === 12 && load.inFlight === 12 && load.reserved === 120 && load.refusedToday === 12;
    }, 5000);
    expect(admissions.entries.map(({ message }) => message)).toEqual([
      "Database unavailable; each process enforces its share of the limits of keys",
      "Database available again; enforcing the limits of keys",
    ]);
    await admissions.close();
  });

  test("slow is not failed: requests are decided in time, and counted once when the answer comes", async () => {
    await using opened = await openTestStore();
    const { limits } = opened.store;
    const admissions = open(limits, { waitLimitMs: 500 });
    const rules = { ...noLimits, requests_per_minute: 10, max_concurrency: 10 };
    await admit(admissions, rules, 2);
    admissions.set("hanging");
    const results = await admit(admissions, rules, 12);
    expect([countAdmitted(results), admissions.isDegraded()]).toEqual([8, true]);
    admissions.set("well");
    await pollUntil(() => !admissions.isDegraded(), 5000);
    await pollUntil(async () => {
      const [load] = await limits.listLoads([1]);
      return load?.minuteRequests === 10 && load.inFlight === 10;
    }, 5000);
    for (const one of results) one.end();
    await pollUntil(async () => (await limits.listLoads([1]))[0]?.inFlight === 2);
    expect(countAdmitted(await admit(admissions, rules, 1))).toBe(0);
    await admissions.close();
  });
});

test("a request waits no longer because it came while the database was slow to answer for others", async () => {
  const [first, never] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let batches = 0;
  const slow: LimitStore = {
    ...away,
    beat: async () => [],
    async take({ requests }) {
      await (++batches === 1 ? first : never).promise;
      return requests.map(() => ({
        now: Date.now(),
        ahead: 0,
        subjects: [{ load: { ...noLoad }, places: 0, tokens: 0 }],
      }));
    },
  };
  const waitLimitMs = 2000;
  const admissions = open(slow, { waitLimitMs, fallback: "open" });
  const rules = { ...noLimits, max_concurrency: 10 };
  const early = admit(admissions, rules, 1);
  await pollUntil(() => batches === 1);
  const startedAt = performance.now();
  const late = admit(admissions, rules, 1);
  // A database that takes so long.
  await Bun.sleep(0.75 * waitLimitMs);
  first.resolve();
  expect(countAdmitted(await early)).toBe(1);
  expect([countAdmitted(await late), admissions.isDegraded(), batches]).toEqual([1, true, 2]);
  expect(performance.now() - startedAt).toBeLessThan(1.4 * waitLimitMs);
  never.resolve();
  await admissions.close();
});

test("the share is of no fewer processes than this machine runs", async () => {
  const admissions = open(listing, { processes: 4 });
  expect(countAdmitted(await admit(admissions, { ...noLimits, requests_per_minute: 20 }, 20))).toBe(5);
  await admissions.close();
});

test("what requests used counts as long as their windows, however long the database is away", async () => {
  let skippedMs = 0;
  const admissions = open(listing, { clock: () => start, monotonic: () => performance.now() + skippedMs });
  const rules = { ...noLimits, tokens_per_minute: 1000, tokens_per_day: 1500 };
  const ask = async (tokens: number): Promise<Admission> => {
    const admission = await admissions.admit([{ id: 1, limits: rules }], tokens);
    admission.handOver();
    admission.end();
    return admission;
  };
  const asked = async (tokens: number) => (await ask(tokens)).refusedBy;
  expect([await asked(600), await asked(600)]).toEqual([undefined, "tokens_per_minute"]);
  skippedMs += 62_000;
  expect([await asked(600), await asked(600)]).toEqual([undefined, "tokens_per_day"]);
  skippedMs += 62_000;
  expect([await asked(600), await asked(200)]).toEqual(["tokens_per_day", undefined]);
  skippedMs += 24 * 3_600_000;
  expect(await asked(600)).toBeUndefined();
  await admissions.close();
});

test("a request that does not say how much it may generate reserves what is left of a share", async () => {
  const admissions = open(listing);
  const rules = { ...noLimits, tokens_per_day: 1000 };
  const sizes = [600, 1030, 1030];
  const results = await Promise.all(sizes.map((size) => admissions.admit([{ id: 1, limits: rules }], size, false, 7)));
  expect(results.map(({ refusedBy }) => refusedBy)).toEqual([undefined, undefined, "tokens_per_day"]);
  // A request that is not sent uses nothing of it, and one that is counted may have used all.
  results[1]?.cancel();
  expect(countAdmitted(await admit(admissions, rules, 1, 400))).toBe(1);
  results[0]?.handOver();
  results[0]?.end();
  expect(countAdmitted(await admit(admissions, rules, 1, 1))).toBe(0);
  await admissions.close();
});

test.each([
  ["closed", "unavailable", 3],
  ["open", undefined, 3],
  ["local", undefined, 1],
] as const)(
  "LIMITS_FALLBACK=%s answers %s to %i of 3 in one that knows nothing",
  async (fallback, refusedBy, count) => {
    const admissions = open(away, { fallback });
    const results = await admit(admissions, { ...noLimits, max_concurrency: 3 }, 3);
    expect(results.filter((one) => one.refusedBy === refusedBy)).toHaveLength(count);
    await admissions.close();
  },
);

test("what ended while counts wait stays reserved until they are written", async () => {
  let areCountsWaiting = true;
  const taken: number[] = [];
  const admissions = open(
    {
      ...away,
      beat: async (id) => [{ id, beat: 2 }],
      take: async ({ requests }) => {
        for (const { subjects } of requests) taken.push(...subjects.map(({ tokens }) => tokens));
        return requests.map(() => ({ now: Date.now(), ahead: 0, subjects: [{ load: noLoad, places: 0, tokens: 0 }] }));
      },
    },
    { areCountsWaiting: () => areCountsWaiting },
  );
  const rules = { ...noLimits, tokens_per_minute: 1000 };
  const [counted, refused] = await admit(admissions, rules, 2, 10);
  expect(counted?.handOver()).toMatchObject({ subjects: [1] });
  counted?.end();
  // Nothing of it was counted.
  refused?.end();
  await pollUntil(() => taken.at(-1) === 10);
  areCountsWaiting = false;
  await pollUntil(() => taken.at(-1) === 0);
  await admissions.close();
});
