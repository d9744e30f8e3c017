import { expect, test } from "bun:test";
import { addSums, metricOf } from "../../../console/src/usage/usage-sums.ts";

test("a metric is a field of the sums, or input and output together", () => {
  const sums = addSums([
    { requests: 1, input: 10, output: 100 },
    { requests: 2, input: 20, output: 200 },
  ]);
  expect((["requests", "input", "output", "total"] as const).map((metric) => metricOf(sums, metric))).toEqual([
    3, 30, 300, 330,
  ]);
});
