import { expect, test } from "bun:test";
import { dailyUsageCsv, lineOf, mergeLines } from "../../../console/src/usage/daily-usage.ts";

const row = (date: string, keyId: number | null, requests: number) => ({
  date,
  key_id: keyId,
  key_name: keyId === null ? null : `a,${keyId}`,
  request_count: requests,
  input_tokens: 10 * requests,
  output_tokens: 100 * requests,
  cost: requests === 4 ? null : 1.5,
  cost_is_partial: true,
});
const days = [row("2026-11-21", null, 3), row("2026-11-20", null, 4)].map(lineOf);

test("a row is a line with its sums, its key and its cost", () => {
  expect(days[0]).toEqual({
    date: "2026-11-21",
    key: undefined,
    requests: 3,
    input: 30,
    output: 300,
    cost: { cost: 1.5, cost_is_partial: true },
  });
  expect(lineOf(row("2026-11-21", 5, 3)).key).toEqual({ id: 5, name: "a,5" });
});

test("a page replaces the lines of its days and keys, and the others stay in the order of the API", () => {
  const lines = [row("2026-11-21", 2, 1), row("2026-11-20", 1, 1), row("2026-11-20", 2, 1)].map(lineOf);
  const merged = mergeLines(lines, [row("2026-11-21", 1, 7), row("2026-11-21", 2, 8)].map(lineOf));
  expect(merged.map(({ date, key, requests }) => [date, key?.id, requests])).toEqual([
    ["2026-11-21", 1, 7],
    ["2026-11-21", 2, 8],
    ["2026-11-20", 1, 1],
    ["2026-11-20", 2, 1],
  ]);
});

test("the CSV has the lines and columns of the table, and the costs where there are prices", () => {
  expect(dailyUsageCsv(days, false, false)).toBe(
    "date,request_count,input_tokens,output_tokens\r\n2026-11-21,3,30,300\r\n2026-11-20,4,40,400\r\n",
  );
  expect(dailyUsageCsv([lineOf(row("2026-11-21", 2, 2))], true, false)).toBe(
    'date,key_id,key_name,request_count,input_tokens,output_tokens\r\n2026-11-21,2,"a,2",2,20,200\r\n',
  );
  expect(dailyUsageCsv(days, false, true)).toBe(
    "date,request_count,input_tokens,output_tokens,cost,cost_is_partial\r\n2026-11-21,3,30,300,1.5,true\r\n2026-11-20,4,40,400,,true\r\n",
  );
});
