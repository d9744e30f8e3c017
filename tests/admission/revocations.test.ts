import { expect, test } from "bun:test";
import { createRevocations } from "../../src/admission/revocations.ts";
import type { KeyEnding, KeyStore } from "../../src/store/keys/contract.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { createKeys } from "../store/test-store.ts";
import { pollUntil } from "../support/poll-until.ts";

/** A process that was idle until now, and runs requests from now on. */
function startBusy(
  store: Pick<KeyStore, "listEndings" | "endRunning">,
  /** By both clocks. */
  time: { now: number; monotonic: number },
) {
  let polls = 0;
  let gate = Promise.resolve();
  const calls: { keyId: number; begunUntil: number }[] = [];
  const revocations = createRevocations({
    store: {
      endRunning: store.endRunning,
      async listEndings() {
        await gate;
        const listed = await store.listEndings();
        polls += 1;
        return listed;
      },
    },
    clock: () => time.now,
    monotonic: () => time.monotonic,
    isRunning: () => true,
    pollMs: 5,
  });
  revocations.onRevoked((keyId, begunUntil) => void calls.push({ keyId, begunUntil }));
  return {
    /** The keys whose requests were ended that had begun at a time of the monotonic clock. */
    ended: (begunAt: number) =>
      [...new Set(calls.filter(({ begunUntil }) => begunAt <= begunUntil).map(({ keyId }) => keyId))].toSorted(
        (a, b) => a - b,
      ),
    endRunning: revocations.endRunning,
    async poll(): Promise<void> {
      const before = polls;
      await pollUntil(() => polls >= before + 3);
    },
    /** Holds a poll back before it reads. @returns lets it go on */
    async holdPoll(): Promise<() => void> {
      const held = Promise.withResolvers<void>();
      gate = held.promise;
      await Bun.sleep(50);
      return held.resolve;
    },
    [Symbol.dispose]: revocations.close,
  };
}

onEachEngine(({ openTestStore }) => {
  const start = Date.parse("2026-05-01T12:00:00.000+09:00");

  test("a process that was idle ends nothing of a key that was switched off, and on again", async () => {
    const time = { now: start, monotonic: 0 };
    await using opened = await openTestStore(() => time.now);
    const { keys } = opened.store;
    await createKeys(opened.store, ["off", "on again", "expired", "without expiry again", "deleted"]);
    for (const id of [1, 2]) await keys.update(id, { isActive: false });
    for (const id of [3, 4]) await keys.update(id, { expiresAt: start });
    await keys.delete(5);
    for (const id of [1, 2, 3, 4, 5]) await keys.endRunning(id, start);
    await keys.update(2, { isActive: true });
    await keys.update(4, { expiresAt: null });
    time.now += 2000;
    // As far as the clocks of machines may differ, something may have run here.
    using busy = startBusy(keys, time);
    time.monotonic = 1;
    await busy.poll();
    expect(busy.ended(1)).toEqual([1, 3, 5]);
  });

  test("a process ends at once what it is asked to end, and later what comes later or from others", async () => {
    const time = { now: start, monotonic: 0 };
    await using opened = await openTestStore(() => time.now);
    const { keys } = opened.store;
    using busy = startBusy(keys, time);
    const release = await busy.holdPoll();
    await busy.endRunning(1, start);
    expect(busy.ended(0)).toEqual([1]);
    release();
    await busy.endRunning(2, start + 1);
    await keys.endRunning(3, start + 1);
    await busy.poll();
    expect(busy.ended(0)).toEqual([1]);
    time.now += 1;
    await busy.poll();
    expect(busy.ended(0)).toEqual([1, 2, 3]);
  });

  // Clocks of two instances may differ by this much.
  test.each([0, -3000, 3000])(
    "another process that had a key switched off, and on again, ends nothing that began later (%d ms ahead)",
    async (aheadMs) => {
      const time = { now: start, monotonic: 10 };
      await using opened = await openTestStore(() => time.now);
      const { keys } = opened.store;
      await createKeys(opened.store, ["off and on", "off"]);
      using busy = startBusy(keys, time);
      await busy.poll();
      const release = await busy.holdPoll();
      time.monotonic = 20;
      for (const id of [1, 2]) {
        await keys.update(id, { isActive: false });
        await keys.endRunning(id, start + aheadMs);
      }
      await keys.update(1, { isActive: true });
      time.monotonic = 30;
      release();
      await busy.poll();
      time.now += 3000;
      time.monotonic = 40;
      await busy.poll();
      expect([10, 20, 30].map(busy.ended)).toEqual([[1, 2], [2], [2]]);
    },
  );

  test("a process that ended its own requests of a key ends none that begin once it is on again", async () => {
    const time = { now: start, monotonic: 10 };
    await using opened = await openTestStore(() => time.now);
    const { keys } = opened.store;
    await createKeys(opened.store, ["off and on"]);
    using busy = startBusy(keys, time);
    const release = await busy.holdPoll();
    time.monotonic = 20;
    await keys.update(1, { isActive: false });
    await busy.endRunning(1, start);
    await keys.update(1, { isActive: true });
    time.monotonic = 30;
    release();
    await busy.poll();
    expect([20, 30].map(busy.ended)).toEqual([[1], []]);
  });
});

const ending: KeyEnding = { id: 1, keyId: 7, endedAt: 99, isActive: false, expiresAt: null };
const listing = { listEndings: () => [ending], endRunning: async () => {} };

test("each ending ends the requests of its key once", async () => {
  const time = { now: 100, monotonic: 0 };
  using busy = startBusy(listing, time);
  await busy.poll();
  time.monotonic = 1;
  await busy.poll();
  expect([0, 1].map(busy.ended)).toEqual([[7], []]);
});

test("a clock that is set back, and comes to the same time again, ends no requests again", async () => {
  const time = { now: 100, monotonic: 0 };
  using busy = startBusy(listing, time);
  await busy.poll();
  time.monotonic = 1;
  for (const now of [100, 90, 100]) {
    time.now = now;
    await busy.poll();
  }
  expect([0, 1].map(busy.ended)).toEqual([[7], []]);
});
