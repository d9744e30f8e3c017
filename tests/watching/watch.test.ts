import { afterEach, beforeEach, expect, test } from "bun:test";
import { onEachEngine } from "../store/each-engine.ts";
import type { TestStore } from "../store/test-store.ts";
import type { Facts } from "../../src/watching/state-rules.ts";
import { type SharedStates, Watch } from "../../src/watching/watch.ts";
import { StorageError } from "../../src/store/storage-error.ts";
import type { Change } from "../../src/domain/changes.ts";

onEachEngine(({ openTestStore }) => {
  let now: number;
  let opened: TestStore;
  let isAway = false;
  beforeEach(async () => {
    now = Date.now();
    isAway = false;
    opened = await openTestStore(() => now);
  });
  afterEach(() => opened[Symbol.asyncDispose]());

  const shared = (): SharedStates<Change> => {
    const { save, list, silence } = opened.store.states;
    const away = () => Promise.reject(new StorageError("away"));
    return {
      save: (rows) => (isAway ? away() : save(rows)),
      list: () => (isAway ? away() : list()),
      silence,
    };
  };
  /** One process. */
  function startProcess(process: string) {
    let facts: Partial<Facts> = {};
    const watch = new Watch<Change>({
      gather: async () => ({ now, ...facts }),
      store: shared(),
      process,
      clock: () => now,
    });
    return {
      watch,
      /** @returns kinds that stand, by instance */
      async see(next?: Partial<Facts>) {
        facts = next ?? facts;
        now += 2000;
        const { states, past, unknownSince } = await watch.list();
        const shown = ({ kind, instance, since, until }: (typeof states)[number]) => ({ kind, instance, since, until });
        return { states: states.map(shown), past: past.map(shown), unknownSince };
      },
    };
  }
  const full = { disk: { freeBytes: 1, sizeBytes: 1000 } };
  const roomy = { disk: { freeBytes: 900, sizeBytes: 1000 } };
  const open = { descriptors: { open: 90, limit: 100 } };

  test("each process hears of what others see, and of its end", async () => {
    const [one, other] = [startProcess("a/1"), startProcess("b/1")];
    await one.see(open);
    const since = now;
    expect((await other.see()).states).toEqual([{ kind: "descriptors", instance: "a/1", since, until: null }]);
    await one.see({ descriptors: { open: 1, limit: 100 } });
    const until = now;
    expect(await other.see()).toMatchObject({ states: [], past: [{ kind: "descriptors", since, until }] });
  });

  test("what a killed process saw is over once its lease is", async () => {
    const [one, other] = [startProcess("a/1"), startProcess("b/1")];
    await one.see(open);
    expect((await other.see()).states).toHaveLength(1);
    await opened.store.states.save([]).catch(() => {});
    now += 40_000;
    const rows = await opened.store.states.list();
    // PostgreSQL's own clock has not moved.
    if (rows[0]?.until === null) return;
    expect(await other.see()).toMatchObject({ states: [], past: [{ kind: "descriptors" }] });
  });

  test("a restart, and the time that it took, changes nothing of since when", async () => {
    const before = startProcess("a/1");
    await before.see(full);
    const since = now;
    await before.watch.close();
    now += 60_000;
    expect((await startProcess("a/2").see(full)).states).toEqual([{ kind: "disk", instance: "a", since, until: null }]);
    now += 60_000;
    expect((await startProcess("c/2").see(full)).states).toContainEqual({
      kind: "disk",
      instance: "c",
      since: now,
      until: null,
    });
  });

  test("while the database is away, others are as they were, and what ends meanwhile is written later", async () => {
    const [one, other] = [startProcess("a/1"), startProcess("b/1")];
    await one.see(open);
    await other.see(full);
    const knownAt = now;
    isAway = true;
    expect(await other.see()).toMatchObject({
      states: [{ kind: "disk" }, { kind: "descriptors" }],
      unknownSince: knownAt,
    });
    await other.see(roomy);
    const until = now;
    isAway = false;
    expect(await one.see()).toMatchObject({ unknownSince: undefined });
    expect((await other.see()).past).toMatchObject([{ kind: "disk", until }]);
    expect((await one.see()).past).toMatchObject([{ kind: "disk", until }]);
  });

  test("writes and reads nothing while nothing is wrong", async () => {
    const calls: string[] = [];
    const watch = new Watch({
      gather: async () => ({ now, ...roomy }),
      store: {
        list: async () => (calls.push("list"), []),
        save: async () => void calls.push("save"),
        silence: async () => {},
      },
      process: "a/1",
      clock: () => now,
    });
    await watch.ready();
    expect(calls).toEqual([]);
    expect(watch.own()).toEqual([]);
  });
});
