import { expect, test } from "bun:test";
import { besideRow, growing, growthRow, isSlow, isSteep } from "./growth.ts";
import { type Run, small, workloads } from "./workloads.ts";

/** Of as many requests as cost these microseconds each. */
const runsOf = (...us: number[]): Run[] =>
  us.map((cpuUs) => ({ cpuUs: cpuUs * 10, result: { statuses: { 200: 10 } } }) as unknown as Run);

test("a row has the median of each size, and the ratio of the rounds", () => {
  const kind = { name: "keys", sizes: [1, 10, 100] };
  const row = growthRow(kind, small, [runsOf(100, 200, 400), runsOf(1, 2, 3), runsOf(110, 220, 400)]);
  expect(row).toEqual({ ...kind, cpuUs: [200, 2, 220], ratio: 1.1 });
});

test.each([
  [1.19, false],
  [1.21, true],
  [Number.NaN, true],
])("a ratio of %p is steep: %p", (ratio, steep) => {
  expect(isSteep({ name: "keys", sizes: [], cpuUs: [], ratio })).toBe(steep);
});

test("two backends may cost more than one, by a ratio of their own", () => {
  const of = (ratio: number) => isSteep({ name: "backends of the model", sizes: [], cpuUs: [], ratio });
  expect([of(1.44), of(1.46)]).toEqual([false, true]);
});

test("what grows does so by a hundred times at least", () => {
  for (const { sizes, most } of growing)
    if (most === undefined) expect(Math.max(...sizes) / Math.max(1, Math.min(...sizes))).toBeGreaterThanOrEqual(100);
});

test("a row of what runs beside requests has both 99th percentiles, their ratio in a round, and the memory more", () => {
  const runs = (...p99Ms: number[]): Run[] =>
    p99Ms.map((ms) => ({ result: { latency: { p99: ms * 1000 } }, peakMb: 100 + ms }) as unknown as Run);
  const rate = workloads.find(({ name }) => name === "rate") ?? small;
  const row = besideRow(
    { name: "a backup" },
    rate,
    new Map([
      ["without", runs(2, 4, 8)],
      ["with", runs(3, 7, 9)],
    ]),
  );
  expect(row).toEqual({ name: "a backup", p99Ms: [4, 7], ratio: 1.5, extraMb: 1 });
  expect([isSlow(row), isSlow({ ...row, ratio: 2.01 }), isSlow({ ...row, extraMb: 33 })]).toEqual([false, true, true]);
});
