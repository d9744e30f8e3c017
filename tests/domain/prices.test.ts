import { expect, test } from "bun:test";
import { pricesOn, rankPrices } from "../../src/domain/prices.ts";
import { dayNumberFrom } from "../../src/time/seoul.ts";

const price = (pattern: string, valid_from: string) => ({
  pattern,
  valid_from,
  input: 1,
  cached_input: null,
  output: 2,
});
const pricesOf = (...models: ReturnType<typeof price>[]) => rankPrices({ currency: "EUR", models, energy: [] });

const prices = pricesOf(
  price("*", "2026-01-01"),
  price("large-*", "2026-01-01"),
  price("large-*", "2026-03-01"),
  price("*-*-turbo", "2026-01-01"),
  price("large-2", "2026-02-01"),
);

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
  expect(found && `${found.pattern} ${found.valid_from}`).toBe(expected);
});

test("a day is parsed once, however many models are looked up", () => {
  let reads = 0;
  const counted = {
    ...price("model *", ""),
    get valid_from() {
      reads++;
      return "2026-01-01";
    },
  };
  const ranked = pricesOf(counted, counted);
  const priceOf = pricesOn(ranked, dayNumberFrom("2026-05-01"));
  for (let n = 0; n < 100; n++) expect(priceOf(`model ${n}`)?.pattern).toBe("model *");
  expect(reads).toBe(2);
});
