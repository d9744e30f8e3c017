import { describe, expect, test } from "bun:test";
import { readBudgets } from "../house/budgets.ts";
import {
  guarded,
  guardedNames,
  guardTable,
  instructionsLine,
  isSlower,
  measure,
  ratioOf,
  withBudgets,
} from "./guard.ts";
import { countEvents } from "./processes.ts";
import { type Run, type Workload, workloads } from "./workloads.ts";

const workload: Workload = {
  name: "few",
  title: "few",
  quick: true,
  load: {},
  figures: [{ name: "CPU", unit: "µs", of: ({ cpuUs }) => cpuUs }],
};
const runsOf = (...cpuUs: number[]): Run[] => cpuUs.map((us) => ({ cpuUs: us }) as Partial<Run> as Run);
const countedRuns = (...counts: number[]): Run[] =>
  counts.map((count) => {
    const result = { statuses: { 200: 10 } } as unknown as Run["result"];
    const counters: Partial<Run> = {
      cpuUs: count,
      pageFaults: 2 * count,
      contextSwitches: 3 * count,
      instructions: count,
    };
    return Object.assign(counters, { result }) as Run;
  });

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

test("the guard's counters are those of one request of Tollgate's, in the round with the least", () => {
  const measured = measure(workload, "Bun", countedRuns(100, 900, 200), countedRuns(100, 100, 100));
  expect(Object.fromEntries(measured)).toEqual({
    "CPU, `few` beside Bun": 2,
    "page faults per request, `few`": 20,
    "context switches per request, `few`": 30,
  });
});

test("the guard compares instructions where both were counted, and says where none were", () => {
  expect(instructionsLine(workload, countedRuns(100, 900, 200), countedRuns(100, 100, 100))).toEndWith(": 2.00");
  expect(instructionsLine(workload, runsOf(1, 2), countedRuns(1, 1))).toEndWith(": not counted by this kernel");
});

test.skipIf(Bun.which("perf") === null)("events of a process are counted from the call to its end", async () => {
  const end = countEvents(process.pid, "page-faults");
  // perf is heard of only when it ends, so memory is touched until it must have attached.
  for (let round = 0; round < 50; round++) {
    new Uint8Array(4e6).fill(1);
    await Bun.sleep(10);
  }
  expect(await end()).toBeGreaterThan(100);
});

test("each guarded workload has a budget, and each budget of speed a workload", async () => {
  const names = Object.entries(guarded).flatMap(([name, beside]) => {
    const found = workloads.find((one) => one.name === name);
    if (found === undefined) throw new Error(`There is no workload ${name}`);
    return Object.values(guardedNames(found, beside));
  });
  const measured = await withBudgets(new Map(names.map((name) => [name, 1])));
  expect(measured.map(({ name }) => name)).toEqual(names);
  expect((await readBudgets("Budgets of speed")).map(({ name }) => name)).toEqual(names);
  await expect(withBudgets(new Map([["`none`", 1]]))).rejects.toThrow("`none` has none");
});
