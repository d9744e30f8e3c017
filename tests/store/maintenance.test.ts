import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { getTableColumns, sql } from "drizzle-orm";
import { prepareMaintenance, startMaintenance } from "../../src/store/maintenance.ts";
import { defaultRetention, expiringRows } from "../../src/store/retention.ts";
import { columnName } from "../../src/store/schema/table-names.ts";
import { onEachEngine } from "./each-engine.ts";
import { createKeys, maintain, memoryLog, type TestEngine, usageIncrement } from "./test-store.ts";

const now = Date.parse("2026-06-15T12:00:00.000+09:00");
const minute = Math.floor(now / 60_000);
const keptMinutes = 32 * 1440;

onEachEngine(({ engine: name, openTestEngine }) => {
  const countMinutes = async ({ engine }: TestEngine): Promise<number | undefined> =>
    (await engine.rows<{ n: number }>(sql`select count(*) as n from usage_minute`))[0]?.n;

  const addMinutes = ({ store }: TestEngine, keys: number, ...minutes: number[]): Promise<unknown> =>
    store.usage.add(
      minutes.flatMap((one) =>
        Array.from({ length: keys }, (_, key) => usageIncrement({ keyId: key + 1, minute: one })),
      ),
    );

  test("each table keeps the rows whose time is not over, up to the last one", async () => {
    await using opened = await openTestEngine(() => now);
    const { engine } = opened;
    for (const { table, column, timeOf, keeps } of expiringRows) {
      const columns = Object.entries(getTableColumns(engine.tables[table]));
      const cutoff = timeOf(now) - keeps(defaultRetention);
      for (const [n, time] of [cutoff - 1, cutoff, timeOf(now)].entries()) {
        const values = columns.map(([key, { dataType }]) =>
          key === column ? time : dataType === "string" ? `${n}` : n,
        );
        await engine.prepareInsert(
          engine.tables[table],
          columns.map(([key]) => key),
        )([values])();
      }
    }
    await maintain(opened.store);
    for (const { table, column, timeOf, keeps } of expiringRows) {
      const time = sql.raw(columnName(engine.tables[table], column));
      const kept = await engine.rows<{ time: number }>(
        sql`select ${time} as time from ${engine.tables[table]} order by 1`,
      );
      expect([table, kept.map((row) => row.time)]).toEqual([
        table,
        [timeOf(now) - keeps(defaultRetention), timeOf(now)],
      ]);
    }
  });

  test("counts, latencies and readings are kept for as long as charts and the handbook say", () => {
    const dayMs = 86_400_000;
    const days = { usageMinute: 32, usageFlushes: 1, latencyMinute: 31, outcomeHour: 31, gpuMinute: 32, gpuHour: 32 };
    for (const { table, timeOf, keeps } of expiringRows) {
      const kept = (days as Record<string, number>)[table];
      if (kept !== undefined)
        expect([table, keeps(defaultRetention)]).toEqual([table, timeOf(kept * dayMs) - timeOf(0)]);
    }
  });

  test("a round deletes a few minutes, and the other tables have their turn between two portions", async () => {
    await using opened = await openTestEngine(() => now);
    const portion = prepareMaintenance(
      opened.engine,
      () => now,
      defaultRetention,
      () => 0,
    );
    await addMinutes(opened, 300, ...Array.from({ length: 7 }, (_, n) => minute - keptMinutes - 100 + n));
    await opened.store.sessions.create("old", { csrfToken: "token", username: "admin", expiresAt: now - 1 });
    expect(await portion()).toBe(true);
    const first = 2100 - ((await countMinutes(opened)) ?? 0);
    expect(first).toBe(name === "SQLite" ? 10 : 500);
    expect(await opened.store.sessions.find("old", 0)).toBeDefined();
    expect(await portion()).toBe(true);
    expect(await countMinutes(opened)).toBe(2100 - first);
    expect(await opened.store.sessions.find("old", 0)).toBeUndefined();
    // In no time at all, so as many as a portion may have.
    expect(await maintain({ maintain: portion })).toBe(3);
    expect(await countMinutes(opened)).toBe(600);
    // The next round.
    await maintain({ maintain: portion });
    expect(await countMinutes(opened)).toBe(0);
    expect(await maintain({ maintain: portion })).toBe(1);
  });

  test.skipIf(name !== "SQLite")("a portion deletes as many rows as took 2 ms before, from 10 to 500", async () => {
    await using opened = await openTestEngine(() => now);
    const tookMs = [0, 250, 0.5, 1, 4, 2];
    let at = 0;
    const slow: typeof opened.engine = {
      ...opened.engine,
      async transaction(work) {
        const result = await opened.engine.transaction(work);
        at += tookMs[deleted.length] ?? 0;
        return result;
      },
    };
    const portion = prepareMaintenance(
      slow,
      () => now,
      defaultRetention,
      () => at,
    );
    await addMinutes(opened, 200, ...Array.from({ length: 5 }, (_, n) => minute - keptMinutes - 100 + n));
    const deleted: number[] = [];
    for (let left = 1000; deleted.length < tookMs.length; left -= deleted.at(-1) ?? 0) {
      expect(await portion()).toBe(true);
      deleted.push(left - ((await countMinutes(opened)) ?? 0));
    }
    expect(deleted).toEqual([10, 500, 10, 40, 80, 40]);
  });

  test("a table that cannot be deleted from keeps no other one from its turn, nor the next round", async () => {
    await using opened = await openTestEngine(() => now);
    await addMinutes(opened, 1, minute - keptMinutes - 1);
    await opened.store.sessions.create("old", { csrfToken: "token", username: "admin", expiresAt: now - 1 });
    await opened.engine.rows(sql`alter table usage_minute rename to away`);
    expect(await maintain(opened.store).catch(() => "fails")).toBe("fails");
    await maintain(opened.store);
    expect(await opened.store.sessions.find("old", 0)).toBeUndefined();
    await opened.engine.rows(sql`alter table away rename to usage_minute`);
    await maintain(opened.store);
    expect(await countMinutes(opened)).toBe(0);
  });

  test("flushes, admissions, pushes, logins and rotations delete nothing but old samples", async () => {
    await using opened = await openTestEngine(() => now);
    const { usage, gpu, sessions, keys } = opened.store;
    const [id = 0] = await createKeys(opened.store, ["a"]);
    await addMinutes(opened, 1, minute - keptMinutes - 1);
    await sessions.create("old", { csrfToken: "token", username: "admin", expiresAt: now - 1 });
    await keys.rotate(id, { key: "second", now: now - 5000, validUntil: now - 1000 });
    await usage.add([usageIncrement({ keyId: 1, minute })], { ledger: "one", number: 1 });
    await gpu.add({ keyId: 1, recordedAt: now, readings: [] });
    await sessions.create("new", { csrfToken: "token", username: "admin", expiresAt: now + 1000 });
    expect(await countMinutes(opened)).toBe(2);
    expect(await sessions.find("old", 0)).toBeDefined();
    // The secret that was replaced is the key's again, and replaced again, before its row is deleted.
    await keys.rotate(id, { key: "secret of a", now, validUntil: now });
    await keys.rotate(id, { key: "third", now, validUntil: now + 1000 });
    expect(await keys.findActive("secret of a")).toMatchObject({ id, expiresAt: now + 1000 });
  });

  test.skipIf(name === "SQLite")("of two processes, one is at it at a time", async () => {
    await using opened = await openTestEngine(() => now);
    const { engine } = opened;
    await addMinutes(opened, 1, minute - keptMinutes - 1);
    const other = prepareMaintenance(engine, () => now, defaultRetention);
    await engine.transaction(async () => {
      await engine.lock("maintenance");
      // A transaction of its own, over another connection.
      expect(await other()).toBe(false);
    });
    expect(await countMinutes(opened)).toBe(1);
    await maintain({ maintain: other });
    expect(await countMinutes(opened)).toBe(0);
  });
});

describe("the loop", () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  async function pass(ms: number): Promise<void> {
    jest.advanceTimersByTime(ms);
    for (let n = 0; n < 10; n++) await Promise.resolve();
  }

  function start(results: (boolean | Error)[], tookMs: number[] = []) {
    const portions = { count: 0 };
    let at = 0;
    const stop = startMaintenance({
      monotonic: () => at,
      async portion() {
        at += tookMs[portions.count] ?? 0;
        const result = results[portions.count++] ?? false;
        if (result instanceof Error) throw result;
        return result;
      },
      log: memoryLog().log,
    });
    return { portions, stop };
  }

  test("begins soon, pauses five times as long as a portion took, and wakes up once a minute while there is nothing to do", async () => {
    const { portions, stop } = start([true, true, false, false], [20, 0.1]);
    await pass(999);
    expect(portions.count).toBe(0);
    await pass(1);
    expect(portions.count).toBe(1);
    await pass(99);
    expect(portions.count).toBe(1);
    await pass(1);
    expect(portions.count).toBe(2);
    await pass(9);
    expect(portions.count).toBe(2);
    await pass(1);
    expect(portions.count).toBe(3);
    await pass(59_999);
    expect(portions.count).toBe(3);
    await pass(1);
    expect(portions.count).toBe(4);
    stop();
    await pass(60 * 60_000);
    expect([portions.count, jest.getTimerCount()]).toEqual([4, 0]);
  });

  test("goes on a minute after a failure", async () => {
    const { portions, stop } = start([new Error("the database does not respond"), false]);
    await pass(1000);
    expect(portions.count).toBe(1);
    await pass(60_000);
    expect(portions.count).toBe(2);
    stop();
  });
});
