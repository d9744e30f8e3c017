import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Store } from "../../../src/store/store.ts";
import type { DayAndKeyColumns, DayColumns, DayRange } from "../../../src/store/reports/contract.ts";
import { dayFromNumber, dayNumberFrom, dayOf, minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, type DailyRow, readBody, readReport, usageIncrement } from "../test-store.ts";

const start = minuteOf(Date.parse("2026-05-01T00:00:00+09:00"));
const clock = () => (start + 1440) * 60_000;

const rangeOf = (fields: Partial<DayRange> = {}): DayRange => ({ firstDay: "2026-04-01", hiddenIds: [], ...fields });

const rowsOf = ({ rows, names }: DayAndKeyColumns): DailyRow[] =>
  rows.day.map((day, index) => {
    const id = rows.keyId[index] ?? 0;
    return {
      date: dayFromNumber(day),
      key_id: id,
      key_name: names.name[names.keyId.indexOf(id)] ?? "missing",
      request_count: rows.requestCount[index] ?? 0,
      input_tokens: rows.inputTokens[index] ?? 0,
      output_tokens: rows.outputTokens[index] ?? 0,
    };
  });

async function readPages(store: Pick<Store, "usage">, range: DayRange): Promise<DailyRow[][]> {
  const pages: DailyRow[][] = [];
  for (let beforeDay: string | undefined; ;) {
    const page = await readBody(store.usage.byDayAndKey({ ...range, beforeDay }));
    pages.push(rowsOf(page));
    if (page.nextBefore === null) return pages;
    beforeDay = dayFromNumber(page.nextBefore);
  }
}

const sumOf = (rows: readonly DailyRow[], field: "request_count" | "output_tokens"): number =>
  rows.reduce((total, row) => total + row[field], 0);

onEachEngine(({ openTestEngine }) => {
  test("for any usage, days and pages have the rows of the daily report", async () => {
    const anyUsage = fc.record({
      keyId: fc.integer({ min: 1, max: 90 }),
      day: fc.nat(20),
      requestCount: fc.integer({ min: 1, max: 50 }),
      outputTokens: fc.nat(100_000),
    });
    await using opened = await openTestEngine(clock);
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyUsage, { maxLength: 900, size: "max" }),
        fc.subarray([1, 2, 3, 70, 80]),
        async (partial, hiddenIds) => {
          await opened.clear();
          const { usage } = opened.store;
          await usage.add(partial.map(({ day, ...one }) => usageIncrement({ ...one, minute: start - day * 1440 })));
          const firstDay = dayOf((start - 15 * 1440) * 60_000);
          const all = await readReport<DailyRow>(usage.daily(firstDay));
          const rows = all.filter(({ key_id }) => !hiddenIds.includes(key_id));
          const pages = await readPages(opened.store, rangeOf({ firstDay, hiddenIds }));
          expect(pages.flat()).toEqual(rows);
          for (const page of pages.slice(0, -1)) expect(page.length).toBeGreaterThanOrEqual(200);

          const { days, rowCount } = await readBody(usage.byDay(rangeOf({ firstDay, hiddenIds })));
          expect(rowCount).toBe(rows.length);
          expect(days.day.map((day) => dayFromNumber(day))).toEqual([...new Set(rows.map(({ date }) => date))]);
          for (const [index, day] of days.day.entries()) {
            const ofDay = rows.filter((row) => row.date === dayFromNumber(day));
            expect(days.requestCount[index]).toBe(sumOf(ofDay, "request_count"));
            expect(days.outputTokens[index]).toBe(sumOf(ofDay, "output_tokens"));
          }
        },
      ),
      { numRuns: 15 },
    );
  });

  test("a filter applies to the days, the pages and the sum over the keys that exist", async () => {
    await using opened = await openTestEngine(clock);
    const { store } = opened;
    await createKeys(store, ["alpha", "Alphabet", "gone alpha", "beta"]);
    await store.usage.add(
      [1, 2, 3, 4].flatMap((keyId) => [
        usageIncrement({ keyId, minute: start, outputTokens: keyId }),
        usageIncrement({ keyId, minute: start - 90 * 1440, outputTokens: 1000 * keyId }),
      ]),
    );
    await store.keys.delete(3);
    const days = (filter: Partial<DayRange>): Promise<DayColumns> => readBody(store.usage.byDay(rangeOf(filter)));
    expect(await days({ search: "ALPHA" })).toEqual({
      rowCount: 3,
      allTime: { requestCount: 4, inputTokens: 40, outputTokens: 3003 },
      days: { day: [dayNumberFrom("2026-05-01")], requestCount: [3], inputTokens: [30], outputTokens: [6] },
    });
    expect(await days({ keyId: 4 })).toMatchObject({ allTime: { outputTokens: 4004 }, days: { outputTokens: [4] } });
    expect(await days({ keyId: 99 })).toMatchObject({
      rowCount: 0,
      allTime: { requestCount: 0 },
      days: { day: [] },
    });
    const [page] = await readPages(store, rangeOf({ search: "alpha", hiddenIds: [1] }));
    expect(page?.map(({ key_name }) => key_name)).toEqual(["Alphabet", "gone alpha"]);
  });

  test("a day with more keys than a slice is one page", async () => {
    await using opened = await openTestEngine(clock);
    const keyIds = Array.from({ length: 1500 }, (_, n) => n + 1);
    await opened.store.usage.add(
      [start, start - 1440].flatMap((minute) => keyIds.map((keyId) => usageIncrement({ keyId, minute }))),
    );
    const pages = await readPages(opened.store, rangeOf());
    expect(pages.map((page) => page.length).filter(Boolean)).toEqual([1500, 1500]);
    expect(pages[0]?.map(({ key_id }) => key_id)).toEqual(keyIds);
  });
});
