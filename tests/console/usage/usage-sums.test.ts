import { expect, test } from "bun:test";
import { addSums, metricOf, usagePointsCsv } from "../../../console/src/usage/usage-sums.ts";

test("a metric is a field of the sums, or input and output together", () => {
  const sums = addSums([
    { requests: 1, input: 10, output: 100 },
    { requests: 2, input: 20, output: 200 },
  ]);
  expect((["requests", "input", "output", "total"] as const).map((metric) => metricOf(sums, metric))).toEqual([
    3, 30, 300, 330,
  ]);
});

test("the CSV has the API's rows", () => {
  const point = (key_id: number, key_name: string) => ({
    bucket_start: "2026-11-21T10:00:00.000+09:00",
    key_id,
    key_name,
    request_count: 1,
    input_tokens: 10,
    output_tokens: 100,
  });
  expect(usagePointsCsv([point(1, "alpha"), point(2, "=beta")])).toBe(
    [
      "bucket_start,key_id,key_name,request_count,input_tokens,output_tokens",
      "2026-11-21T10:00:00.000+09:00,1,alpha,1,10,100",
      "2026-11-21T10:00:00.000+09:00,2,'=beta,1,10,100",
      "",
    ].join("\r\n"),
  );
});
