import { describe, expect, test } from "bun:test";
import { readBudgets } from "../house/budgets.ts";
import { guarded, guardedName, guardTable, isSlower, ratioOf, withBudgets } from "./guard.ts";
import { type Run, type Workload, workloads } from "./workloads.ts";

const workload: Workload = {
  name: "few",
  title: "few",
  quick: true,
  load: {},
  figures: [{ name: "CPU", unit: "µs", of: ({ cpuUs }) => cpuUs }],
};
const runsOf = (...cpuUs: number[]): Run[] => cpuUs.map((us) => ({ cpuUs: us }) as Partial<Run> as Run);

describe("the guard's ratio", () => {
  test("is the median of those of each round, so that a slow minute of the machine does not count", () => {
    expect(ratioOf(workload, runsOf(20, 400, 60), runsOf(10, 200, 20))).toBe(2);
  });

  test.each([
    [2, false],
    [2.5, false],
    [2.51, true],
    [Number.NaN, true],
  ])("%p is over a budget of 2: %p", (value, isOver) => {
    expect(isSlower({ name: "x", max: 2, value })).toBe(isOver);
    expect(guardTable([{ name: "x", max: 2, value }])).toContain(isOver ? "over" : "within");
  });
});

test("each guarded workload has a budget, and each budget of speed a workload", async () => {
  const names = Object.entries(guarded).map(([name, beside]) => {
    const found = workloads.find((one) => one.name === name);
    if (found === undefined) throw new Error(`There is no workload ${name}`);
    return guardedName(found, beside);
  });
  const measured = await withBudgets(new Map(names.map((name) => [name, 1])));
  expect(measured.map(({ name }) => name)).toEqual(names);
  expect((await readBudgets("Budgets of speed")).map(({ name }) => name)).toEqual(names);
  await expect(withBudgets(new Map([["`none`", 1]]))).rejects.toThrow("`none` has none");
});
