import { expect, test } from "bun:test";
import { dailyUsageCsv, lineOfRow, linesByDay, linesByDayAndKey } from "../../../console/src/usage/daily-usage.ts";

const columns = { request_count: [3, 4], input_tokens: [30, 40], output_tokens: [300, 400] };

test("each day is a line with its sums", () => {
  expect(linesByDay({ date: ["2026-11-21", "2026-11-20"], ...columns })).toEqual([
    { date: "2026-11-21", key: undefined, requests: 3, input: 30, output: 300 },
    { date: "2026-11-20", key: undefined, requests: 4, input: 40, output: 400 },
  ]);
});

test("each key of a day is a line with the key's name", () => {
  const rows = { date: ["2026-11-21", "2026-11-21"], key_id: [2, 5], ...columns };
  expect(linesByDayAndKey(rows, { key_id: [5, 2], name: ["five", "two"] }).map(({ key }) => key)).toEqual([
    { id: 2, name: "two" },
    { id: 5, name: "five" },
  ]);
});

test("the CSV has the lines and columns of the table", () => {
  expect(dailyUsageCsv(linesByDay({ date: ["2026-11-21", "2026-11-20"], ...columns }), false)).toBe(
    "date,request_count,input_tokens,output_tokens\r\n2026-11-21,3,30,300\r\n2026-11-20,4,40,400\r\n",
  );
  const row = {
    date: "2026-11-21",
    key_id: 2,
    key_name: "a,b",
    request_count: 2,
    input_tokens: 20,
    output_tokens: 200,
  };
  expect(dailyUsageCsv([lineOfRow(row)], true)).toBe(
    'date,key_id,key_name,request_count,input_tokens,output_tokens\r\n2026-11-21,2,"a,b",2,20,200\r\n',
  );
});

test("the CSV has the costs where there are prices, and nothing where a cost is not known", () => {
  const lines = linesByDay({ date: ["2026-11-21", "2026-11-20"], ...columns });
  const costs = new Map([["2026-11-21", { cost: 1.5, cost_is_partial: true }]]);
  expect(dailyUsageCsv(lines, false, ({ date }) => costs.get(date))).toBe(
    "date,request_count,input_tokens,output_tokens,cost,cost_is_partial\r\n2026-11-21,3,30,300,1.5,true\r\n2026-11-20,4,40,400,,\r\n",
  );
});
