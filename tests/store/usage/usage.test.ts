import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, type DailyRow, type HistoryPoint, readReport, usageIncrement } from "../test-store.ts";

const midnight = minuteOf(new Date("2026-05-02T00:00:00+09:00").valueOf());
const clock = () => midnight * 60_000;

onEachEngine(({ engine: name, openTestEngine }) => {
  test("of a key whose usage the database refuses, nothing stays, and the others count", async () => {
    await using opened = await openTestEngine(clock);
    const [a = 0, b = 0] = await createKeys(opened.store, ["a", "b"]);
    const { engine } = opened;
    // The last table that is written.
    const trigger = "create trigger refuse before update on keys";
    const [statements, undo] =
      name === "SQLite"
        ? [[`${trigger} when new.id = ${b} begin select raise(abort, 'no'); end`], "drop trigger refuse"]
        : [
            [
              "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$",
              `${trigger} for each row when (new.id = ${b}) execute function refuse()`,
            ],
            "drop function refuse cascade",
          ];
    for (const statement of statements) await engine.rows(sql.raw(statement));
    const flushed = [a, b].map((keyId) => usageIncrement({ keyId, minute: midnight }));
    const { refused } = await opened.store.usage.add(flushed, { ledger: "test", number: 1 });
    await engine.rows(sql.raw(undo));
    expect(refused).toMatchObject([{ reason: expect.stringContaining("no"), increments: [{ keyId: b }] }]);
    expect(await opened.store.keys.list()).toMatchObject([
      { id: a, requestCount: 1, inputTokens: 10 },
      { id: b, requestCount: 0, inputTokens: 0 },
    ]);
    expect(await opened.store.usage.sumOfDay("2026-05-02")).toMatchObject({ requestCount: 1, inputTokens: 10 });
    expect(await opened.store.usage.sumOfMinutes(midnight, midnight + 1)).toMatchObject({ requestCount: 1 });
  });

  test("any range of minutes is summed exactly, even if it starts or ends within an hour", async () => {
    await using opened = await openTestEngine(clock);
    const { usage } = opened.store;
    const minutes = Array.from({ length: 200 }, (_, n) => midnight + n);
    await usage.add(minutes.map((minute) => usageIncrement({ keyId: 1, minute })));
    for (const [from, to] of [
      [0, 200],
      [0, 1],
      [59, 61],
      [60, 120],
      [61, 119],
      [61, 179],
      [30, 30],
      [150, 999],
    ] as const) {
      const { requestCount } = await usage.sumOfMinutes(midnight + from, midnight + to);
      expect([from, to, requestCount]).toEqual([from, to, Math.min(to, 200) - from]);
    }
  });

  test("usage of a key that was deleted meanwhile counts in the usage rows", async () => {
    await using opened = await openTestEngine(clock);
    const [id = 0] = await createKeys(opened.store, ["gone"]);
    await opened.store.keys.delete(id);
    await opened.store.usage.add([usageIncrement({ keyId: id, minute: midnight })]);
    expect(await opened.store.usage.sumOfKeys()).toMatchObject({ requestCount: 0 });
    expect(await readReport<DailyRow>(opened.store.usage.daily("2026-05-02"))).toEqual([
      { date: "2026-05-02", key_id: id, key_name: "gone", request_count: 1, input_tokens: 10, output_tokens: 2 },
    ]);
  });

  test("a flush that is sent again counts once, and the next flush of its ledger counts", async () => {
    await using opened = await openTestEngine(clock);
    const { usage } = opened.store;
    const increments = [usageIncrement({ keyId: 1, minute: midnight })];
    await usage.add(increments, { ledger: "one", number: 1 });
    await usage.add(increments, { ledger: "one", number: 1 });
    await usage.add(increments, { ledger: "two", number: 1 });
    await usage.add(increments, { ledger: "one", number: 2 });
    await usage.add(increments, { ledger: "one", number: 1 });
    expect(await usage.sumOfDay("2026-05-02")).toMatchObject({ requestCount: 3 });
  });

  test("sums of the largest numbers are exact", async () => {
    await using opened = await openTestEngine(clock);
    const tokens = 2 ** 52;
    await opened.store.usage.add([
      usageIncrement({ keyId: 1, minute: midnight, inputTokens: tokens, outputTokens: tokens - 1 }),
    ]);
    await opened.store.usage.add([usageIncrement({ keyId: 1, minute: midnight, inputTokens: 3, outputTokens: 1 })]);
    expect(await opened.store.usage.sumOfDay("2026-05-02")).toEqual({
      requestCount: 2,
      inputTokens: tokens + 3,
      outputTokens: tokens,
    });
  });

  test("sums beyond 64 bits are approximate, and no report fails", async () => {
    await using opened = await openTestEngine(clock);
    const { store, engine } = opened;
    await createKeys(store, ["a", "b"]);
    const increments = [1, 2].map((keyId) => usageIncrement({ keyId, minute: midnight - 30 }));
    await store.usage.add(increments);
    for (const table of ["keys", "usage_minute", "usage_hour", "usage_day"]) {
      await engine.rows(sql.raw(`update ${table} set input_tokens = 9223372036854775807`));
    }
    const all = { requestCount: 2, inputTokens: 2 ** 64, outputTokens: 4 };
    expect(await store.usage.sumOfKeys()).toEqual(all);
    expect(await store.usage.sumOfDay("2026-05-01")).toEqual(all);
    expect(await store.usage.sumOfMinutes(midnight - 60, midnight)).toEqual(all);
    expect(await store.usage.sumOfMinutes(midnight - 31, midnight - 29)).toEqual(all);
    await engine.rows(sql.raw(`insert into usage_minute values (${midnight - 29}, 1, 1, 9223372036854775807, 0)`));
    for (const bucketMinutes of [1, 5, 60, 1440]) {
      const points = await readReport<HistoryPoint>(store.usage.history({ since: 0, bucketMinutes }));
      expect(points.length).toBeGreaterThanOrEqual(2);
      expect(Math.min(...points.map((point) => point.input_tokens))).toBeGreaterThanOrEqual(2 ** 63);
    }
    expect(await readReport<DailyRow>(store.usage.daily("2026-05-01"))).toMatchObject([
      { input_tokens: 2 ** 63 },
      { input_tokens: 2 ** 63 },
    ]);
  });
});
