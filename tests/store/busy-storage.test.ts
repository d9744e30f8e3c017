import { expect, test } from "bun:test";
import type { Store } from "../../src/store/store.ts";
import { onEachEngine } from "./each-engine.ts";
import { openTestStore as openSqliteStore, usageIncrement } from "./test-store.ts";
import { StorageError } from "../../src/store/storage-error.ts";

const increments = [usageIncrement({ keyId: 1, minute: 29_000_000 })];

/** Sends calls of a login flood, and counts those that have resolved. */
function flood({ sessions }: Pick<Store, "sessions">, calls: number) {
  const outcomes = { done: 0, refused: [] as unknown[] };
  const all = Array.from({ length: calls }, (_, n) =>
    sessions.countLoginAttempt([{ scope: `address ${n % 10}`, attempts: 10 }], Date.now()).then(
      () => void outcomes.done++,
      (error: unknown) => void outcomes.refused.push(error),
    ),
  );
  return { outcomes, ended: Promise.all(all) };
}

const isOverLimit = (error: unknown): boolean => String(error).includes("too many calls wait for the database");

onEachEngine(({ openTestStore }) => {
  test("a count is written before the calls that were waiting when it came", async () => {
    await using opened = await openTestStore();
    // The first count prepares its statements.
    await opened.store.usage.add(increments);
    const { outcomes, ended } = flood(opened.store, 100);
    await opened.store.usage.add(increments);
    // SQLite's thread takes it next. To PostgreSQL it has a connection of its own, which the machine may serve at any time.
    if (openTestStore === openSqliteStore) expect(outcomes.done).toBeLessThan(50);
    await ended;
    // The machine may be so busy that some took too long.
    expect(outcomes.refused.filter(isOverLimit)).toEqual([]);
    expect(outcomes.done + outcomes.refused.length).toBe(100);
  });

  test("calls beyond the limit of those that wait are refused, counts and the check for /readyz are not", async () => {
    await using opened = await openTestStore();
    const { outcomes, ended } = flood(opened.store, 2000);
    const adding = Array.from({ length: 100 }, () => opened.store.usage.add(increments));
    await Promise.all([opened.store.checkWritable(), ...adding, ended]);
    const refused = outcomes.refused.filter(isOverLimit);
    expect(refused.length).toBeWithin(1001, 1901);
    expect(refused.every((error) => error instanceof StorageError)).toBeTrue();
    expect(outcomes.done + outcomes.refused.length).toBe(2000);
    expect(await opened.store.usage.sumOfMinutes(0, 100_000_000)).toMatchObject({ requestCount: 100 });
    const { outcomes: later, ended: laterEnded } = flood(opened.store, 100);
    await laterEnded;
    expect(later.refused.filter(isOverLimit)).toEqual([]);
  });
});

test("a report that is being read waits for counts too, and counts do not wait for it", async () => {
  await using opened = await openSqliteStore();
  await opened.store.usage.add(
    Array.from({ length: 20_000 }, (_, n) =>
      usageIncrement({ keyId: 1 + (n % 50), minute: 29_000_000 + Math.floor(n / 50) }),
    ),
  );
  let slices = 0;
  const reading = Promise.all(
    Array.from({ length: 20 }, async () => {
      for await (const _ of opened.store.usage.history({ since: 0, bucketMinutes: 1 })) slices++;
    }),
  );
  for (let n = 0; n < 10; n++) {
    const before = slices;
    await opened.store.usage.add(increments);
    expect(slices - before).toBeLessThan(5);
  }
  await reading;
});
