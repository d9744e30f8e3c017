import { describe, expect, test } from "bun:test";
import { createAdmissions } from "../../src/admission/admission.ts";
import type { AdmissionsOptions } from "../../src/admission/process-leases.ts";
import { noLimits } from "../../src/store/keys/rules.ts";
import type { Instance, Lease, LeaseBatch, LimitStore } from "../../src/store/limits/contract.ts";
import { noLoad } from "../../src/store/limits/judge.ts";
import type { Store } from "../../src/store/store.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { memoryLog, usageIncrement } from "../store/test-store.ts";
import { createTestProcess } from "../store/limits/test-process.ts";
import { pollUntil } from "../support/poll-until.ts";
import type { Admission } from "../../src/domain/admissions.ts";

const monotonic = () => performance.now();

function admissionsOver(store: LimitStore, more: Partial<AdmissionsOptions> = {}) {
  const { log, entries } = memoryLog();
  return {
    ...createAdmissions({ store, monotonic, clock: Date.now, log, beatMs: 20, deadAfterMs: 1000, ...more }),
    entries,
  };
}

const onePlace = { ...noLimits, max_concurrency: 1 };

onEachEngine(({ openTestStore }) => {
  test("a request that does not say how much it may generate reserves what is left of a limit of tokens", async () => {
    await using opened = await openTestStore();
    const admissions = admissionsOver(opened.store.limits);
    const limits = { ...noLimits, tokens_per_day: 1000, tokens_per_month: 900 };
    const reserved = async () => (await opened.store.limits.listLoads([1]))[0]?.reserved;
    expect((await admissions.admit([{ id: 1, limits }], 300)).refusedBy).toBeUndefined();
    expect((await admissions.admit([{ id: 1, limits }], 1030, false, 601)).refusedBy).toBe("tokens_per_month");
    expect((await admissions.admit([{ id: 1, limits }], 1030)).refusedBy).toBe("tokens_per_month");
    const second = await admissions.admit([{ id: 1, limits }], 1030, false, 7);
    expect([second.refusedBy, second.used("tokens_per_month"), await reserved()]).toEqual([undefined, 900, 900]);
    expect((await admissions.admit([{ id: 1, limits }], 1030, false, 7)).refusedBy).toBe("tokens_per_month");
    second.end();
    await pollUntil(async () => (await reserved()) === 300);
    // Only requests that were refused.
    await pollUntil(async () => (await opened.store.limits.listLoads([1]))[0]?.refusedToday === 3);
    await admissions.close();
  });

  test("what is added to a limit holds for all processes together, until its window ends", async () => {
    await using opened = await openTestStore();
    const several = [admissionsOver(opened.store.limits), admissionsOver(opened.store.limits)];
    const admittedWith = async (more: number, until: number): Promise<number> => {
      const limits = { ...noLimits, tokens_per_day: 10, limits_extra: { tokens_per_day: { more, until } } };
      const asks = Array.from({ length: 80 }, (_, index) => several[index % 2]?.admit([{ id: 1, limits }], 1));
      return (await Promise.all(asks)).filter((one) => one?.refusedBy === undefined).length;
    };
    expect(await admittedWith(20, Date.now() - 1)).toBe(10);
    expect(await admittedWith(20, Date.now() + 60_000)).toBe(20);
    expect(await admittedWith(25, Date.now() + 60_000)).toBe(5);
    expect(await admittedWith(90, Date.now() - 1)).toBe(0);
    await Promise.all(several.map((one) => one.close()));
  });

  test("a request that was admitted before its body was read keeps its place when it asks again, and counts once", async () => {
    await using opened = await openTestStore();
    const admissions = admissionsOver(opened.store.limits);
    const limits = { ...onePlace, requests_per_minute: 5, tokens_per_day: 1000 };
    const early = await admissions.admit([{ id: 1, limits }], 0);
    // Whoever asked before it, in the same tick, does not come between.
    const [other, whole] = await Promise.all([
      admissions.admit([{ id: 1, limits }], 10),
      admissions.admit([{ id: 1, limits }], 30, false, undefined, early),
    ]);
    expect([other.refusedBy, whole.refusedBy, whole.used("requests_per_minute")]).toEqual([
      "max_concurrency",
      undefined,
      1,
    ]);
    early.cancel();
    expect((await admissions.admit([{ id: 1, limits }], 0)).refusedBy).toBe("max_concurrency");
    whole.end();
    const next = await admissions.admit([{ id: 1, limits }], 0);
    expect([next.refusedBy, next.used("requests_per_minute"), next.used("max_concurrency")]).toEqual([undefined, 2, 1]);
    // What is refused when it asks again has nothing any more.
    const fewer = { ...limits, requests_per_minute: 1 };
    expect((await admissions.admit([{ id: 1, limits: fewer }], 30, false, undefined, next)).refusedBy).toBe(
      "requests_per_minute",
    );
    await pollUntil(async () => (await opened.store.limits.listLoads([1]))[0]?.inFlight === 0);
    await admissions.close();
  });

  test("a request that takes what is left keeps its turn, and the place that it had before its body was read", async () => {
    await using opened = await openTestStore();
    const admissions = admissionsOver(opened.store.limits);
    const limits = { ...noLimits, max_concurrency: 2, tokens_per_day: 1000 };
    const first = await admissions.admit([{ id: 1, limits }], 100);
    const early = await admissions.admit([{ id: 1, limits }], 0);
    const [next, whole] = await Promise.all([
      admissions.admit([{ id: 1, limits }], 10),
      admissions.admit([{ id: 1, limits }], 1030, false, 7, early),
    ]);
    expect([next.refusedBy, whole.refusedBy, whole.used("tokens_per_day")]).toEqual([
      "tokens_per_day",
      undefined,
      1000,
    ]);
    for (const one of [first, whole]) one.end();
    await pollUntil(async () => (await opened.store.limits.listLoads([1]))[0]?.reserved === 0);
    await admissions.close();
  });

  test.each(["before", "after"])(
    "a process that never has a key with limits still gives back what one left that died %s its start",
    async (when) => {
      await using opened = await openTestStore();
      const { limits } = opened.store;
      const leave = async (): Promise<void> => {
        await limits.beat("killed");
        await createTestProcess(limits, "killed").admit({ limits: onePlace, requests: [5] });
      };
      if (when === "before") await leave();
      const looked = Promise.withResolvers<void>();
      const listInstances = () => limits.listInstances().finally(looked.resolve);
      const idle = admissionsOver({ ...limits, listInstances }, { deadAfterMs: 200 });
      await looked.promise;
      if (when === "after") await leave();
      await pollUntil(async () => (await limits.listLoads([1]))[0]?.inFlight === 0);
      await idle.close();
      expect(await limits.listInstances()).toEqual([]);
    },
  );

  test("requests whose admission is repeated, since its reply was lost, hold no place twice", async () => {
    await using opened = await openTestStore();
    const { limits } = opened.store;
    const admissions = admissionsOver(losingFirstReply(limits));
    const rules = { ...onePlace, tokens_per_minute: 100 };
    const results = await Promise.all([1, 2].map(() => admissions.admit([{ id: 1, limits: rules }], 60)));
    expect(results.map(({ refusedBy }) => refusedBy)).toEqual([undefined, "tokens_per_minute"]);
    expect((await limits.listLoads([1]))[0]).toMatchObject({ inFlight: 1, reserved: 60 });
    for (const one of results) one.end();
    await pollUntil(async () => (await limits.listLoads([1]))[0]?.inFlight === 0);
    expect((await admissions.admit([{ id: 1, limits: rules }], 60)).refusedBy).toBeUndefined();
    await admissions.close();
  });

  test.each<[string, (admission: Admission, store: Store) => unknown, { isReplyLost: boolean }]>([
    ["ended", (admission) => admission.end(), { isReplyLost: false }],
    ["ended", (admission) => admission.end(), { isReplyLost: true }],
    ["been counted", countNow, { isReplyLost: false }],
  ])("a beat that stores again what has %s meanwhile leaks no place (%#)", async (_, finish, options) => {
    await using opened = await openTestStore();
    const { limits } = opened.store;
    const { store, holdBeat } = holdingBeats(limits, options);
    const admissions = admissionsOver(store);
    const admission = await admissions.admit([{ id: 1, limits: onePlace }], 0);
    const release = await holdBeat();
    // The others take this process for dead.
    await limits.remove((await limits.listInstances()).map(({ id }) => id));
    await finish(admission, opened.store);
    // Written with what was given back.
    await admissions.admit([{ id: 2, limits: onePlace }], 0);
    release();
    await pollUntil(async () => (await limits.listInstances()).length > 0);
    await pollUntil(async () => (await limits.listLoads([1]))[0]?.inFlight === 0, 5000);
    await admissions.close();
  });

  describe("of a key that sends many requests", () => {
    const rules = { ...noLimits, tokens_per_minute: 1_000_000 };

    async function admitMany(admissions: ReturnType<typeof createAdmissions>, count: number): Promise<Admission[]> {
      const admitted: Admission[] = [];
      while (admitted.length < count) admitted.push(await admissions.admit([{ id: 1, limits: rules }], 10));
      return admitted;
    }

    /** Resolves when the database has exactly what is held, which it has after the second in which something was spare. */
    async function waitForReserved(limits: LimitStore, reserved: number): Promise<void> {
      await pollUntil(async () => (await limits.listLoads([1]))[0]?.reserved === reserved, 5000);
    }

    test("what ended before a beat stored it again is given back", async () => {
      await using opened = await openTestStore();
      const { limits } = opened.store;
      const { store, holdBeat } = holdingBeats(limits, { isReplyLost: false });
      const admissions = admissionsOver(store);
      const admitted = await admitMany(admissions, 40);
      await waitForReserved(limits, 400);
      const release = await holdBeat();
      for (const one of admitted.splice(0, 30)) one.end();
      // Written with what was given back, before the others take this process for dead.
      await admissions.admit([{ id: 2, limits: onePlace }], 0);
      await limits.remove((await limits.listInstances()).map(({ id }) => id));
      release();
      await pollUntil(async () => (await limits.listInstances()).length > 0);
      await waitForReserved(limits, 100);
      for (const one of admitted) one.end();
      await waitForReserved(limits, 0);
      expect((await limits.listLoads([1]))[0]?.inFlight).toBe(0);
      await admissions.close();
    });

    test("nothing stays of what was spare while replies were lost", async () => {
      const clock = () => Date.parse("2026-05-30T20:00:00+09:00");
      await using opened = await openTestStore(clock);
      const { limits } = opened.store;
      let areLost = false;
      let lost = 0;
      const losing: LimitStore = {
        ...limits,
        async take(batch) {
          const results = await limits.take(batch);
          if (!areLost) return results;
          lost += 1;
          throw new Error("the connection was closed");
        },
      };
      // So long that a busy machine does not decide the first ones alone.
      const admissions = admissionsOver(losing, { waitLimitMs: 1500, clock });
      // As many as a key may send before anything is spare.
      const admitted = await admitMany(admissions, 16);
      await waitForReserved(limits, 160);
      areLost = true;
      const unknown = await admissions.admit([{ id: 1, limits: rules }], 10);
      expect(unknown.used("tokens_per_minute")).toBeUndefined();
      // On a busy machine it is written after the admission has stopped waiting.
      await pollUntil(() => lost > 0);
      areLost = false;
      await waitForReserved(limits, 170);
      for (const one of [...admitted, unknown]) one.end();
      await waitForReserved(limits, 0);
      await admissions.close();
    });
  });
});

/** Its first admission is committed, but the reply is lost. */
function losingFirstReply(store: LimitStore): LimitStore {
  let isLost = false;
  return {
    ...store,
    async take(batch) {
      const results = await store.take(batch);
      if (isLost) return results;
      isLost = true;
      throw new Error("the connection was closed");
    },
  };
}

/** A response gives its place back once it is counted. */
async function countNow(admission: Admission, { usage }: Store): Promise<void> {
  const id = admission.handOver();
  await usage.add([usageIncrement({ keyId: 1, minute: 1 })], undefined, [], undefined, id === undefined ? [] : [id]);
  admission.end();
}

/** Beats that wait, as others do in a queue. */
function holdingBeats(store: LimitStore, { isReplyLost }: { isReplyLost: boolean }) {
  let next: { begun: PromiseWithResolvers<void>; released: PromiseWithResolvers<void> } | undefined;
  return {
    store: {
      ...store,
      async beat(...args: Parameters<LimitStore["beat"]>) {
        const held = next;
        next = undefined;
        held?.begun.resolve();
        await held?.released.promise;
        const listed = await store.beat(...args);
        if (held !== undefined && isReplyLost) throw new Error("the connection was closed");
        return listed;
      },
    },
    /** Resolves when the next beat waits. @returns lets it go on */
    async holdBeat(): Promise<() => void> {
      next = { begun: Promise.withResolvers(), released: Promise.withResolvers() };
      const { begun, released } = next;
      await begun.promise;
      return released.resolve;
    },
  };
}

/** Another process has all places. */
const full = ({ requests }: LeaseBatch): Lease[] =>
  requests.map(() => ({
    subjects: [{ load: { ...noLoad, inFlight: 1 }, places: 0, tokens: 0, seconds: [] }],
    now: Date.now(),
    ahead: 0,
  }));

describe("while the database fails", () => {
  const failing: LimitStore = {
    take: () => Promise.reject(new Error("the disk is full")),
    listLoads: async () => [],
    listNear: async () => [],
    listNotified: async () => [],
    listDays: async () => [],
    beat: () => Promise.reject(new Error("the disk is full")),
    listInstances: async () => [],
    remove: async () => {},
  };

  test("that hangs before the first beat lets requests run without limits in time, until it responds", async () => {
    const disk = Promise.withResolvers<Instance[]>();
    const hanging: LimitStore = {
      ...failing,
      listInstances: () => disk.promise,
      beat: () => disk.promise,
      remove: () => disk.promise.then(() => {}),
      take: async (batch) => {
        await disk.promise;
        return full(batch);
      },
    };
    const admissions = admissionsOver(hanging, { waitLimitMs: 100 });
    const admitted = await Promise.all([
      admissions.admit([{ id: 1, limits: onePlace }], 0),
      admissions.admit([{ id: 2, limits: onePlace }], 0),
    ]);
    expect(admitted.map(({ refusedBy }) => refusedBy)).toEqual([undefined, undefined]);
    expect(admissions.entries.map(({ level }) => level)).toEqual(["warn"]);
    disk.resolve([]);
    await pollUntil(
      async () => (await admissions.admit([{ id: 1, limits: onePlace }], 0)).refusedBy === "max_concurrency",
    );
    await admissions.close();
  });

  test("that hangs does not keep the program from stopping", async () => {
    const hang = (): Promise<never> => new Promise(() => {});
    const hanging: LimitStore = { ...failing, listInstances: hang, beat: hang, remove: hang, take: hang };
    const admissions = admissionsOver(hanging, { waitLimitMs: 100 });
    await admissions.admit([{ id: 1, limits: onePlace }], 0);
    await admissions.close();
  });
});
