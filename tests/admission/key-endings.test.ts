import { expect, test } from "bun:test";
import { createKeyEndings } from "../../src/admission/key-endings.ts";
import type { KeyEnding, LimitStore } from "../../src/store/limit-store.ts";
import type { WallClock } from "../../src/time/clock.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { createKeys } from "../store/test-store.ts";
import { pollUntil } from "../support/poll-until.ts";

/** A process that was idle until now, and runs requests from now on. */
function startBusy(store: Pick<LimitStore, "listEndings" | "endRunning">, clock: WallClock) {
  let polls = 0;
  const ended: number[] = [];
  const endings = createKeyEndings({
    store: {
      endRunning: store.endRunning,
      async listEndings() {
        const listed = await store.listEndings();
        polls += 1;
        return listed;
      },
    },
    clock,
    isRunning: () => true,
    pollMs: 5,
  });
  endings.onEnded((keyId) => void ended.push(keyId));
  return {
    ended,
    endRunning: endings.endRunning,
    async poll() {
      const before = polls;
      await pollUntil(() => polls >= before + 3);
      return ended;
    },
    [Symbol.dispose]: endings.close,
  };
}

onEachEngine(({ openTestStore }) => {
  const start = Date.parse("2026-05-01T12:00:00.000+09:00");

  test("a process that was idle ends nothing of a key that was switched off, and on again", async () => {
    const time = { now: start };
    await using opened = await openTestStore(() => time.now);
    const { keys, limits } = opened.store;
    await createKeys(opened.store, ["off", "on again", "expired", "without expiry again", "deleted"]);
    for (const id of [1, 2]) await keys.update(id, { isActive: false });
    for (const id of [3, 4]) await keys.update(id, { expiresAt: start });
    await keys.delete(5);
    for (const id of [1, 2, 3, 4, 5]) await limits.endRunning(id, start);
    await keys.update(2, { isActive: true });
    await keys.update(4, { expiresAt: null });
    time.now += 2000;
    // As far as the clocks of machines may differ, something may have run here.
    using busy = startBusy(limits, () => time.now);
    const ended = await busy.poll();
    expect(ended.toSorted((a, b) => a - b)).toEqual([1, 3, 5]);
  });

  test("a process ends at once, and only once, what it is asked to end, and later what comes later or from others", async () => {
    const time = { now: start };
    await using opened = await openTestStore(() => time.now);
    const { limits } = opened.store;
    using busy = startBusy(limits, () => time.now);
    await busy.endRunning(1, start);
    expect(busy.ended).toEqual([1]);
    await busy.endRunning(2, start + 1);
    await limits.endRunning(3, start + 1);
    expect(await busy.poll()).toEqual([1]);
    time.now += 1;
    const ended = await busy.poll();
    expect(ended.toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
  });
});

const ending: KeyEnding = { id: 1, keyId: 7, endedAt: 99, isActive: false, expiresAt: null };
const listing = { listEndings: () => [ending], endRunning: async () => 1 };

test("each ending ends the requests of its key once", async () => {
  using busy = startBusy(listing, () => 100);
  expect(await busy.poll()).toEqual([7]);
});

test("a clock that is set back, and comes to the same time again, ends no requests again", async () => {
  const time = { now: 100 };
  using busy = startBusy(listing, () => time.now);
  for (const now of [100, 90, 100]) {
    time.now = now;
    expect(await busy.poll()).toEqual([7]);
  }
});
