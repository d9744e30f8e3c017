import { expect, test } from "bun:test";
import type { Prices } from "../../../console/src/queries.ts";
import { draftOf, pricesOf } from "../../../console/src/operator/price-draft.ts";

const prices: Prices = {
  currency: "EUR",
  models: [
    { pattern: "m*", valid_from: "2026-01-01", input: 0.5, cached_input: null, output: 2 },
    { pattern: "n", valid_from: "2026-02-01", input: 1, cached_input: 0, output: 0 },
  ],
  energy: [{ valid_from: "2026-01-01", per_kwh: 0.25 }],
};

test("prices that are only opened are saved as they were", () => {
  expect(pricesOf(draftOf(prices))).toEqual(prices);
  expect(pricesOf(draftOf({ currency: null, models: [], energy: [] }))).toEqual({
    currency: null,
    models: [],
    energy: [],
  });
});

test("a currency is sent in capital letters, names without spaces around them", () => {
  const [model] = draftOf(prices).models;
  if (model === undefined) throw new Error("The draft has no price");
  const saved = pricesOf({ currency: " eur ", models: [{ ...model, pattern: " m* ", cachedInput: " " }], energy: [] });
  expect(saved.currency).toBe("EUR");
  expect(saved.models[0]).toMatchObject({ pattern: "m*", cached_input: null });
});
