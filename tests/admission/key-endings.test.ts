import { expect, test } from "bun:test";
import { createKeyEndings } from "../../src/admission/key-endings.ts";
import type { KeyEnding } from "../../src/store/limit-store.ts";
import { onEachEngine } from "../store/each-engine.ts";
import { createKeys } from "../store/test-store.ts";
import { pollUntil } from "../support/poll-until.ts";

/** A process that was idle until now, and runs requests from now on. */
function startBusy(listEndings: () => KeyEnding[] | Promise<KeyEnding[]>, now: number) {
  let polls = 0;
  const ended: number[] = [];
  const endings = createKeyEndings({
    store: {
      async listEndings() {
        const listed = await listEndings();
        polls += 1;
        return listed;
      },
    },
    clock: () => now,
    isRunning: () => true,
    pollMs: 5,
  });
  endings.onEnded((keyId) => void ended.push(keyId));
  return {
    ended,
    async poll() {
      const before = polls;
      await pollUntil(() => polls >= before + 3);
      endings.close();
      return ended;
    },
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
    const ended = await startBusy(async () => await limits.listEndings(), time.now).poll();
    expect(ended.toSorted((a, b) => a - b)).toEqual([1, 3, 5]);
  });
});

test("each ending ends the requests of its key once", async () => {
  const ending = { id: 1, keyId: 7, endedAt: 99, isActive: false, expiresAt: null };
  expect(await startBusy(() => [ending], 100).poll()).toEqual([7]);
});
