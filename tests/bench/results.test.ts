import { expect, test } from "bun:test";
import { createTempFolder } from "../support/temp-folder.ts";
import { median, mergeGrowth, mergeRows, readResults, type Row, rowsOf } from "./results.ts";

const row = (workload: string, value: number): Row => ({
  workload,
  figure: "CPU",
  unit: "µs",
  conditions: "",
  values: { Tollgate: value },
});

test("rows have the median of each target's rounds", () => {
  expect(median([5, 1, 9])).toBe(5);
  const runs = new Map([["Tollgate", [30, 10, 20].map((cpuUs) => ({ cpuUs }) as never)]]);
  const figures = [{ name: "CPU", unit: "µs" as const, of: ({ cpuUs }: { cpuUs: number }) => cpuUs }];
  expect(rowsOf({ name: "m", title: "M", quick: true, load: {}, figures }, runs, "today")).toEqual([
    { workload: "M", figure: "CPU", unit: "µs", conditions: "today", values: { Tollgate: 20 } },
  ]);
});

test("a measured row replaces the earlier one in place, and the others stay", () => {
  expect(mergeRows([row("a", 1), row("b", 2)], [row("a", 3), row("c", 4)])).toEqual([
    row("a", 3),
    row("b", 2),
    row("c", 4),
  ]);
});

test("results are read back, and a missing file has none", async () => {
  using folder = createTempFolder();
  expect(readResults(folder.file("none.json"))).toEqual({ rows: [], storage: undefined });
  await Bun.write(folder.file("some.json"), JSON.stringify({ rows: [row("a", 1)] }));
  expect(readResults(folder.file("some.json")).rows).toEqual([row("a", 1)]);
});

test("what grew is measured kind by kind, and replaces what was measured of that kind", () => {
  const grown = (name: string, ratio: number) => ({ name, sizes: [1, 100], cpuUs: [1, ratio], ratio });
  const earlier = { conditions: "then", rows: [grown("keys", 1), grown("models", 1)] };
  expect(mergeGrowth(earlier, undefined)).toBe(earlier);
  expect(mergeGrowth(earlier, { conditions: "now", rows: [grown("keys", 2)] })).toEqual({
    conditions: "now",
    rows: [grown("keys", 2), grown("models", 1)],
  });
});
