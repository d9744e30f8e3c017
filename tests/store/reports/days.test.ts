import { expect, test } from "bun:test";
import fc from "fast-check";
import type { Store } from "../../../src/store/store.ts";
import type { DayRange } from "../../../src/store/reports/usage-ranges.ts";
import { dayOf, minuteOf } from "../../../src/time/seoul.ts";
import { onEachEngine } from "../each-engine.ts";
import { createKeys, type DailyRow, readBody, readReport, usageIncrement } from "../test-store.ts";

const start = minuteOf(Date.parse("2026-05-01T00:00:00+09:00"));
const clock = () => (start + 1440) * 60_000;

interface Days {
  row_count: number;
  all_time: { request_count: number; input_tokens: number; output_tokens: number };
  days: { date: string[]; request_count: number[]; input_tokens: number[]; output_tokens: number[] };
}

interface Page {
  next_before: string | null;
  names: { key_id: number[]; name: string[] };
  rows: Days["days"] & { key_id: number[] };
}

const rangeOf = (fields: Partial<DayRange> = {}): DayRange => ({ firstDay: "2026-04-01", hiddenIds: [], ...fields });

const rowsOf = ({ rows, names }: Page): DailyRow[] =>
  rows.date.map((date, index) => {
    const id = rows.key_id[index] ?? 0;
    return {
      date,
      key_id: id,
      key_name: names.name[names.key_id.indexOf(id)] ?? "missing",
      request_count: rows.request_count[index] ?? 0,
      input_tokens: rows.input_tokens[index] ?? 0,
      output_tokens: rows.output_tokens[index] ?? 0,
    };
  });

async function readPages(store: Pick<Store, "usage">, range: DayRange): Promise<DailyRow[][]> {
  const pages: DailyRow[][] = [];
  for (let beforeDay: string | undefined; ;) {
    const page = await readBody<Page>(store.usage.byDayAndKey({ ...range, beforeDay }) as never);
    pages.push(rowsOf(page));
    if (page.next_before === null) return pages;
    beforeDay = page.next_before;
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
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyUsage, { maxLength: 900, size: "max" }),
        fc.subarray([1, 2, 3, 70, 80]),
        async (partial, hiddenIds) => {
          await using opened = await openTestEngine(clock);
          const { usage } = opened.store;
          await usage.add(partial.map(({ day, ...one }) => usageIncrement({ ...one, minute: start - day * 1440 })));
          const firstDay = dayOf((start - 15 * 1440) * 60_000);
          const all = await readReport<DailyRow>(usage.daily(firstDay));
          const rows = all.filter(({ key_id }) => !hiddenIds.includes(key_id));
          const pages = await readPages(opened.store, rangeOf({ firstDay, hiddenIds }));
          expect(pages.flat()).toEqual(rows);
          for (const page of pages.slice(0, -1)) expect(page.length).toBeGreaterThanOrEqual(200);

          const { days, row_count } = await readBody<Days>(usage.byDay(rangeOf({ firstDay, hiddenIds })) as never);
          expect(row_count).toBe(rows.length);
          expect(days.date).toEqual([...new Set(rows.map(({ date }) => date))]);
          for (const [index, date] of days.date.entries()) {
            const ofDay = rows.filter((row) => row.date === date);
            expect(days.request_count[index]).toBe(sumOf(ofDay, "request_count"));
            expect(days.output_tokens[index]).toBe(sumOf(ofDay, "output_tokens"));
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
    const days = (filter: Partial<DayRange>): Promise<Days> => readBody<Days>(store.usage.byDay(rangeOf(filter)) as never);
    expect(await days({ search: "ALPHA" })).toEqual({
      row_count: 3,
      all_time: { request_count: 4, input_tokens: 40, output_tokens: 3003 },
      days: { date: ["2026-05-01"], request_count: [3], input_tokens: [30], output_tokens: [6] },
    });
    expect(await days({ keyId: 4 })).toMatchObject({ all_time: { output_tokens: 4004 }, days: { output_tokens: [4] } });
    expect(await days({ keyId: 99 })).toMatchObject({
      row_count: 0,
      all_time: { request_count: 0 },
      days: { date: [] },
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
