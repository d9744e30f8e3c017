import { expect, test } from "bun:test";
import type { ModelUsageQuery } from "../../../src/store/traffic/contract.ts";
import { rankPrices } from "../../../src/domain/prices.ts";
import { dayFromNumber, dayNumberFrom, dayNumberOf } from "../../../src/time/seoul.ts";
import { partsOf } from "../../../src/admin/usage/model-reads.ts";
import { getModelUsage } from "../../../src/admin/usage/models.ts";

const now = Date.parse("2026-05-01T12:30:00+09:00");
const today = dayNumberOf(now);

const all = (
  bucket: "none" | "hour" | "day",
  days: number,
  rowsOf: (periods: number) => number,
  fromDays: number[] = [],
) => {
  const price = { pattern: "*", input: 1, cached: null, output: 1 };
  const prices = rankPrices(fromDays.map((fromDay) => ({ ...price, fromDay })));
  const parts = partsOf({ first: today - days + 1, now }, bucket, prices);
  const found: [from: number, to: number, unit: string][] = [];
  for (let part = parts.next(0).value; part !== undefined;) {
    found.push([part.from, part.to, part.unit]);
    part = parts.next(rowsOf(part.to - part.from)).value;
  }
  return found;
};

test.each([
  ["none", 365, 0, today - 364, today + 1],
  ["day", 90, 10, today - 89, today + 1],
  ["hour", 90, 100, (today - 89) * 24 - 9, (today + 1) * 24 - 9],
] as const)(
  "the parts of a range by %s over %d days follow each other back to its begin",
  (bucket, days, rows, from, end) => {
    const parts = all(bucket, days, (periods) => periods * rows, [today - 3, today - 40]);
    expect(parts[0]?.[1]).toBe(end);
    expect(parts.at(-1)?.[0]).toBe(from);
    for (const [index, part] of parts.entries()) expect(parts[index + 1]?.[1] ?? from).toBe(part[0]);
    const perDay = bucket === "hour" ? 24 : 1;
    for (const day of [today - 3, today - 40]) {
      const start = day * perDay - (bucket === "hour" ? 9 : 0);
      expect(parts.some(([first]) => first === start)).toBe(true);
    }
  },
);

test("of a year as a whole, the months are read as months, in one part unless prices change within", () => {
  const partsOfYear = (...priceDays: string[]): string[] =>
    all("none", 365, () => 1, priceDays.map(dayNumberFrom)).map(
      ([from, to, unit]) => `${unit} ${dayFromNumber(from)} ${dayFromNumber(to)}`,
    );
  const current = "day 2026-05-01 2026-05-02";
  const begin = ["day 2025-05-22 2025-06-01", "day 2025-05-12 2025-05-22", "day 2025-05-02 2025-05-12"];
  expect(partsOfYear()).toEqual([current, "month 2025-06-01 2026-05-01", ...begin]);
  expect(partsOfYear("2026-01-01", "2026-03-31")).toEqual([
    current,
    "month 2026-04-01 2026-05-01",
    "day 2026-03-31 2026-04-01",
    "day 2026-03-21 2026-03-31",
    "day 2026-03-11 2026-03-21",
    "day 2026-03-01 2026-03-11",
    "month 2026-01-01 2026-03-01",
    "month 2025-06-01 2026-01-01",
    ...begin,
  ]);
});

test("a part is a single period while each has many rows, and longer where there are few", () => {
  const lengths = (rows: number) =>
    new Set(
      all("hour", 30, (periods) => periods * rows)
        .slice(1)
        .map(([from, to]) => to - from),
    );
  expect([...lengths(2000)]).toEqual([1]);
  expect(Math.max(...lengths(1))).toBe(72);
});

test("of many rows by hour, no more are read than are listed and one read more", async () => {
  let readCount = 0;
  const modelUsage = async ({ from, to }: ModelUsageQuery) => {
    const lastHour = Math.floor(now / 3_600_000);
    const hours = Array.from({ length: to - from }, (_, n) => from + n).filter((hour) => hour <= lastHour);
    const counts = {
      requestCount: 1,
      inputTokens: 1,
      outputTokens: 1,
      cachedInputTokens: 0,
      cachedBesideInputTokens: 0,
      reasoningTokens: 0,
    };
    const rows = hours.flatMap((period) =>
      Array.from({ length: 2300 }, (_, n) => ({ period, keyId: 1 + (n % 100), model: `model ${n}`, ...counts })),
    );
    readCount += rows.length;
    return rows;
  };
  const store = {
    traffic: { modelUsage },
    requests: { keyNames: async () => [] },
    settings: { find: async () => undefined },
  };
  const get = getModelUsage({ store: store as never, clock: () => now });
  const { rows, more } = await get({ query: { days: 90, by: "key_model", bucket: "hour" } as never });
  expect([rows.length, more]).toEqual([4600, true]);
  expect(readCount).toBe(3 * 2300);
});
