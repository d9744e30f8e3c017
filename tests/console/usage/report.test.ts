import { expect, test } from "bun:test";
import type { CostRow } from "../../../console/src/usage/report-queries.ts";
import {
  changeOf,
  type Group,
  modelLabel,
  mostFirst,
  reportCsv,
  reportRow,
} from "../../../console/src/usage/report.ts";
import { money } from "../../../console/src/lib/money.ts";

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
  prompt_tokens: 120,
  from_cache_tokens: 40,
  output_tokens: 10,
  reasoning_tokens: 5,
  cost: 0.5,
  cost_is_partial: false,
  ...fields,
});

test.each<[Exclude<Group, "client">, Partial<CostRow>, string, string | undefined]>([
  ["team", { team_id: 3, team_name: "red" }, "red", "3"],
  ["team", { team_id: 0, team_name: null }, "No team", "0"],
  ["user", { user_id: 9, user_name: "" }, "Deleted user 9", "9"],
  ["key", { key_id: 4, key_name: "" }, "Deleted key 4", "4"],
  ["key_model", { key_id: 4, key_name: "k" }, "k", "4"],
  ["model", { model: "" }, "No model named", undefined],
  ["tag", { tag: "batch" }, "batch", "batch"],
  ["owner", { owner: "" }, "No owner", undefined],
  ["day", { date: "2026-11-21" }, "2026-11-21", "2026-11-21"],
])("a row by %s of %p is called %p, and leads to %p", (by, fields, name, value) => {
  const found = reportRow(row(fields), by);
  expect([found.name, found.value]).toEqual([name, value]);
});

test("the most tokens come first, and days stay in their order", () => {
  const rows = [100, 300, 200].map((input) => reportRow(row({ prompt_tokens: input }), "model"));
  const inputs = (by: Group): number[] => mostFirst(rows, by).map(({ prompt_tokens: input }) => input);
  expect(inputs("model")).toEqual([300, 200, 100]);
  expect(inputs("day")).toEqual([100, 300, 200]);
});

test("a change is of costs where both are known, else of tokens", () => {
  expect(changeOf(row({ cost: 3 }), row({ cost: 2 }))).toBe("+50%");
  expect(changeOf(row({ cost: null }), row({ prompt_tokens: 250 }))).toBe("−50%");
  expect(changeOf(row(), row({ cost: null, prompt_tokens: 0, output_tokens: 0 }))).toBeUndefined();
  expect(changeOf(row(), undefined)).toBeUndefined();
});

test.each([
  ["", "No model named"],
  ["other", "Other models"],
  ["m", "m"],
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

test("the CSV has what the table shows, with the API's names and the period before", () => {
  const rows = [
    reportRow(row({ key_id: 7, key_name: "=SUM(A1)", cost: null }), "key_model"),
    reportRow(row({ key_id: 8, key_name: "b" }), "key_model"),
  ];
  const before = new Map([["8 m", row({ cost: 2 })]]);
  expect(reportCsv(rows, "key_model", before).split("\r\n")).toEqual([
    "key_id,key_name,model,request_count,prompt_tokens,from_cache_tokens,output_tokens,cost,cost_is_partial,tokens_before,cost_before",
    "7,'=SUM(A1),m,1,120,40,10,,false,0,",
    "8,b,m,1,120,40,10,0.5,false,130,2",
    "",
  ]);
  const [header, line] = reportCsv([reportRow(row({ tag: "" }), "tag")], "tag", undefined).split("\r\n");
  expect([header?.slice(0, 17), line]).toEqual(["tag,request_count", ",1,120,40,10,0.5,false"]);
});
