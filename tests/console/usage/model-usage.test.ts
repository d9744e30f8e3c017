import { describe, expect, test } from "bun:test";
import type { CostRow } from "../../../console/src/usage/cost-queries.ts";
import { addModelUsage, modelLabel, modelUsageCsv, mostFirst } from "../../../console/src/usage/model-usage.ts";
import { costLabel, costTitle, money } from "../../../console/src/lib/money.ts";

const row = (fields: Partial<CostRow> = {}): CostRow => ({
  date: null,
  tag: null,
  owner: null,
  key_id: null,
  key_name: null,
  team_id: null,
  team_name: null,
  user_id: null,
  user_name: null,
  model: "m",
  request_count: 1,
  input_tokens: 100,
  cached_input_tokens: 40,
  output_tokens: 10,
  reasoning_tokens: 5,
  cost: 0.5,
  cost_is_partial: false,
  ...fields,
});

describe("a sum of usage", () => {
  test("adds tokens and costs", () => {
    expect(addModelUsage([row(), row()])).toEqual({
      request_count: 2,
      input_tokens: 200,
      cached_input_tokens: 80,
      output_tokens: 20,
      reasoning_tokens: 10,
      cost: 1,
      cost_is_partial: false,
    });
  });

  test("is a lower bound if a part has no price, and is never guessed", () => {
    const sum = addModelUsage([row(), row({ cost: null })]);
    expect([sum.cost, sum.cost_is_partial]).toEqual([0.5, true]);
    expect(costLabel(sum, "EUR")).toBe("≥ €0.50");
    expect(costTitle(sum)).toBe("The cost of some of these tokens is not known");
    const unpriced = addModelUsage([row({ cost: null })]);
    expect([costLabel(unpriced, "EUR"), costTitle(unpriced)]).toEqual(["–", "The cost of these tokens is not known"]);
    expect(costTitle(addModelUsage([row()]))).toBeUndefined();
  });

  test("is exact if what has no price has no tokens", () => {
    const free = row({ cost: null, input_tokens: 0, output_tokens: 0 });
    expect(addModelUsage([row(), free]).cost_is_partial).toBe(false);
  });
});

test("the most tokens come first, and days stay in their order", () => {
  const inputs = (rows: CostRow[]): number[] => mostFirst(rows).map(({ input_tokens: input }) => input);
  expect(inputs([row(), row({ input_tokens: 300 }), row({ input_tokens: 200 })])).toEqual([300, 200, 100]);
  expect(inputs([row({ date: "2026-11-21" }), row({ date: "2026-11-20", input_tokens: 300 })])).toEqual([100, 300]);
});

test.each([
  ["", "No model named"],
  ["other", "Other models"],
  ["m", "m"],
  [null, ""],
])("the model %p is shown as %p", (model, label) => {
  expect(modelLabel(model)).toBe(label);
});

test.each([
  [1234.5, "USD", "$1,234.50"],
  [0.00123, "USD", "$0.0012"],
  [0, "EUR", "€0.00"],
  [1200, "KRW", "₩1,200"],
  [12.6, "KRW", "₩13"],
  // Not less precise than a smaller one, and not nothing.
  [7.25, "KRW", "₩7.3"],
  [0.4, "KRW", "₩0.4"],
  [0.05, "KRW", "₩0.05"],
  [0.125, "USD", "$0.13"],
  [3, "XQZ", "XQZ\u00a03.00"],
])("%d of %s is %s", (amount, currency, label) => {
  expect(money(amount, currency)).toBe(label);
});

test("the CSV has the fields of the API, and no cost without a price", () => {
  const [, line] = modelUsageCsv([row({ key_name: "=SUM(A1)", cost: null, team_id: 0 })]).split("\r\n");
  expect(line).toBe(",,'=SUM(A1),m,,,1,100,40,10,5,,false,0,,,");
});
