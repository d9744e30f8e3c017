import { expect, test } from "bun:test";
import { minuteMs, seoulTimestamp } from "../../../console/src/data/seoul-time.ts";
import {
  type KeyHistory,
  metricOf,
  sumsIn,
  usageHistoryCsv,
  usageHistoryFrom,
  type UsagePoint,
  usageSteps,
} from "../../../console/src/data/usage-history.ts";

const start = Date.parse("2026-11-21T10:00:00+09:00");

const point = (minute: number, keyId: number, requests: number, input: number, output: number): UsagePoint => ({
  bucket_start: seoulTimestamp(start + minute * minuteMs),
  key_id: keyId,
  key_name: `key ${keyId}`,
  request_count: requests,
  input_tokens: input,
  output_tokens: output,
});

const history = usageHistoryFrom([
  point(0, 1, 1, 10, 100),
  point(0, 2, 2, 20, 200),
  point(3, 1, 3, 30, 300),
  point(5, 1, 4, 40, 400),
]);
const key = (id: number): KeyHistory => {
  const found = history.get(id);
  if (found === undefined) throw new Error(`No key ${id}`);
  return found;
};
const span = { from: start, to: start + 5 * minuteMs };

test("points become columns by key, oldest first", () => {
  expect([...history.keys()]).toEqual([1, 2]);
  expect(key(1).starts).toEqual([start, start + 3 * minuteMs, start + 5 * minuteMs]);
  expect(key(1).output).toEqual([100, 300, 400]);
});

test("a step is the sum of its buckets, and 0 without usage", () => {
  expect([...usageSteps(key(1), "output", span, minuteMs)]).toEqual([100, 0, 0, 300, 0]);
  expect([...usageSteps(key(1), "total", span, 2 * minuteMs)]).toEqual([110, 330, 0]);
});

test("a span's end is exclusive", () => {
  expect(sumsIn(key(1), span)).toEqual({ requests: 4, input: 40, output: 400 });
  expect(sumsIn(key(1), { from: span.to, to: span.to + 1 })).toEqual({ requests: 4, input: 40, output: 400 });
});

test("wider steps have the same total", () => {
  for (const stepMs of [1, 2, 3, 7].map((minutes) => minutes * minuteMs)) {
    const sum = usageSteps(key(1), "input", span, stepMs).reduce((total, value) => total + value, 0);
    expect(sum).toBe(metricOf(sumsIn(key(1), span), "input"));
  }
});

test("the CSV has the API's rows for the span and the keys, by time, then by key", () => {
  expect(usageHistoryCsv([key(2), key(1)], span)).toBe(
    [
      "bucket_start,key_id,key_name,request_count,input_tokens,output_tokens",
      "2026-11-21T10:00:00.000+09:00,1,key 1,1,10,100",
      "2026-11-21T10:00:00.000+09:00,2,key 2,2,20,200",
      "2026-11-21T10:03:00.000+09:00,1,key 1,3,30,300",
      "",
    ].join("\r\n"),
  );
});
