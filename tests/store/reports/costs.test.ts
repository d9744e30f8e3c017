import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Store } from "../../../src/store/store.ts";
import type { CostPosition, CostRange, CostRow } from "../../../src/store/reports/contract.ts";
import { dayFromNumber, dayNumberOf, dayOf, minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { type DailyRow, readBody, readReport, usageIncrement } from "../test-store.ts";

const start = minuteOf(Date.parse("2026-05-01T00:00:00+09:00"));
const today = dayNumberOf(start * 60_000);
const clock = () => (start + 1440) * 60_000;

type Range = Partial<CostRange> & Pick<CostRange, "by">;

/** All pages, with the names of their keys. */
async function readRows(
  { usage }: Pick<Store, "usage">,
  range: Range,
): Promise<(CostRow & { keyName: string | undefined })[]> {
  const rows: (CostRow & { keyName: string | undefined })[] = [];
  for (let after: CostPosition | undefined; ;) {
    const whole = { firstDay: today - 30, lastDay: today, prices: [], limit: 200, ...range };
    const page = await readBody(usage.costs({ ...whole, after }));
    const names = new Map(page.names);
    rows.push(...page.rows.map((row) => Object.assign(row, { keyName: names.get(row.keyId) })));
    if (page.next === null) return rows;
    after = page.next;
  }
}

const countersOf = (row: DailyRow): number[] => [row.request_count, row.input_tokens, row.output_tokens];
const sumOf = (rows: readonly number[][]): number[] =>
  rows.reduce((sum, row) => sum.map((value, index) => value + (row[index] ?? 0)), [0, 0, 0]);
const countersOfCosts = (row: CostRow): number[] => [row.requestCount, row.inputTokens, row.outputTokens];

onEachEngine(({ openTestEngine }) => {
  test("for any usage, the rows by day and by key are those of the daily report", async () => {
    const anyUsage = fc.record({
      keyId: fc.integer({ min: 1, max: 90 }),
      day: fc.nat(20),
      model: fc.constantFrom("", "a", "b"),
      requestCount: fc.integer({ min: 1, max: 50 }),
      outputTokens: fc.nat(100_000),
    });
    await using opened = await openTestEngine(clock);
    await fc.assert(
      fc.asyncProperty(fc.array(anyUsage, { maxLength: 900, size: "max" }), async (partial) => {
        await opened.clear();
        const { usage } = opened.store;
        await usage.add(partial.map(({ day, ...one }) => usageIncrement({ ...one, minute: start - day * 1440 })));
        const rows = await readReport<DailyRow>(usage.daily(dayOf((start - 15 * 1440) * 60_000)));
        const range = { firstDay: today - 15 };
        const byDay = await readRows(opened.store, { ...range, by: "day" });
        expect(byDay.map((row) => [dayFromNumber(row.day), countersOfCosts(row)])).toEqual(
          [...Map.groupBy(rows, ({ date }) => date)].map(([date, of]) => [date, sumOf(of.map(countersOf))]),
        );
        const byKey = await readRows(opened.store, { ...range, by: "key", limit: 7 });
        expect(byKey.map((row) => [row.keyId, countersOfCosts(row)])).toEqual(
          [...Map.groupBy(rows, (row) => row.key_id)]
            .toSorted(([a], [b]) => a - b)
            .map(([id, of]) => [id, sumOf(of.map(countersOf))]),
        );
      }),
      { numRuns: 15 },
    );
  });

  test("a changed label, and a deleted key, change nothing of the days before", async () => {
    let minute = start;
    await using opened = await openTestEngine(() => minute * 60_000);
    const { store } = opened;
    for (const fields of [{ owner: "Kim", tags: ["red"] }, { tags: ["red", "night"] }, {}])
      await store.keys.create({ name: "k", key: `key ${JSON.stringify(fields)}`, createdAt: 0, ...fields });
    const use = () =>
      store.usage.add([1, 2, 3].map((keyId) => usageIncrement({ keyId, minute, outputTokens: 10 ** (keyId - 1) })));
    const outputs = async (range: Range) =>
      (await readRows(store, { firstDay: today - 1, lastDay: today + 60, ...range })).map((row) => [
        row.text,
        row.outputTokens,
      ]);
    await use();
    const before = await outputs({ by: "tag" });
    // The last change of a day holds for all of it.
    minute += 40 * 1440;
    await store.keys.update(1, { tags: ["green"] });
    await store.keys.update(1, { owner: "Lee", tags: ["blue"] });
    await store.keys.update(3, { name: "renamed", tags: ["blue"] });
    await use();
    await store.keys.delete(2);
    await store.keys.delete(1);

    expect(await outputs({ by: "tag", lastDay: today + 30 })).toEqual(before);
    expect(before).toEqual([
      ["", 100],
      ["night", 10],
      ["red", 11],
    ]);
    expect(await outputs({ by: "tag", firstDay: today + 40 })).toEqual([
      ["blue", 101],
      ["night", 10],
      ["red", 10],
    ]);
    expect(await outputs({ by: "owner" })).toEqual([
      ["", 220],
      ["Kim", 1],
      ["Lee", 1],
    ]);
    expect(await outputs({ by: "model", tag: "red" })).toEqual([["", 21]]);
    expect(await outputs({ by: "model", owner: "" })).toEqual([["", 220]]);
    const chart = { metric: "output", top: 0, listed: 0, bucketMinutes: 1440 } as const;
    const days = { from: start - 1440, to: start + 50 * 1440 };
    const { other } = await readBody(store.usage.chart({ ...chart, ...days, tag: "blue" }));
    expect(other.values.filter((value) => value > 0)).toEqual([101]);
  });
});
