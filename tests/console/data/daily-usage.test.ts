import { expect, test } from "bun:test";
import {
  dailyUsageCsv,
  dailyUsageLines,
  type DailyUsageRow,
  rowsByDay,
} from "../../../console/src/data/daily-usage.ts";

const row = (date: string, keyId: number, requests: number): DailyUsageRow => ({
  date,
  key_id: keyId,
  key_name: `key ${keyId}`,
  request_count: requests,
  input_tokens: requests * 10,
  output_tokens: requests * 100,
});
const usage = rowsByDay([row("2026-11-21", 1, 1), row("2026-11-21", 2, 2), row("2026-11-20", 2, 4)]);
const everyKey = (): boolean => true;

test("by day, each line is the sum over the keys", () => {
  expect(dailyUsageLines(usage, false, everyKey)).toEqual([
    { date: "2026-11-21", key: undefined, requests: 3, input: 30, output: 300 },
    { date: "2026-11-20", key: undefined, requests: 4, input: 40, output: 400 },
  ]);
});

test("a day without matching rows has no line", () => {
  expect(dailyUsageLines(usage, false, ({ key_id }) => key_id === 1).map(({ date }) => date)).toEqual(["2026-11-21"]);
});

test("the CSV has the lines and columns of the table", () => {
  expect(dailyUsageCsv(dailyUsageLines(usage, false, everyKey), false)).toBe(
    "date,request_count,input_tokens,output_tokens\r\n2026-11-21,3,30,300\r\n2026-11-20,4,40,400\r\n",
  );
  expect(
    dailyUsageCsv(
      dailyUsageLines(usage, true, ({ key_id }) => key_id === 2),
      true,
    ),
  ).toBe(
    "date,key_id,key_name,request_count,input_tokens,output_tokens\r\n2026-11-21,2,key 2,2,20,200\r\n2026-11-20,2,key 2,4,40,400\r\n",
  );
});
