import { expect, test } from "bun:test";
import { pricesOn, rankPrices } from "../../src/domain/prices.ts";
import { dayFromNumber, dayNumberFrom } from "../../src/time/seoul.ts";

const price = (pattern: string, from: string) => ({
  pattern,
  fromDay: dayNumberFrom(from),
  input: 1,
  cached: null,
  output: 2,
});

const prices = rankPrices([
  price("*", "2026-01-01"),
  price("large-*", "2026-01-01"),
  price("large-*", "2026-03-01"),
  price("*-*-turbo", "2026-01-01"),
  price("large-2", "2026-02-01"),
]);

test.each([
  ["small", "2026-05-01", "* 2026-01-01"],
  ["large-1", "2026-02-28", "large-* 2026-01-01"],
  ["large-1", "2026-03-01", "large-* 2026-03-01"],
  ["large-1-turbo", "2026-05-01", "*-*-turbo 2026-01-01"],
  ["large-2", "2026-01-31", "large-* 2026-01-01"],
  ["large-2", "2026-05-01", "large-2 2026-02-01"],
  ["large-2", "2025-12-31", undefined],
])("the model %s on %s has the price %p", (model, day, expected) => {
  const found = pricesOn(prices, dayNumberFrom(day))(model);
  expect(found && `${found.pattern} ${dayFromNumber(found.fromDay)}`).toBe(expected);
});
