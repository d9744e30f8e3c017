import { expect, test } from "bun:test";
import { brokenLine, type Series, sharesOf, stackedBars, stepSums } from "../../../console/src/charts/shapes.ts";

const series = (id: number, values: number[]): Series => ({
  id,
  label: `${id}`,
  colour: id,
  values: new Float64Array(values),
});
const plot = { widthPx: 100, heightPx: 100, top: 10 };

test("bars are stacked with a line between them, and an empty step draws nothing", () => {
  const [lower, upper] = stackedBars([series(1, [5, 0]), series(2, [5, 10])], 2, plot);
  expect(lower).toBe("M0 50h48v50h-48z");
  expect(upper).toBe("M0 0h48v49h-48zM50 0h48v100h-48z");
  expect([...stepSums([series(1, [5, 0]), series(2, [5, 10])], 2)]).toEqual([10, 10]);
});

test("a bar too low for a line between it and the next keeps its height", () => {
  const [, upper] = stackedBars([series(1, [5]), series(2, [0.15])], 1, plot);
  expect(upper).toBe("M0 48.5h98v1.5h-98z");
});

test("the shares of a step add up to 100, and those of an empty step are 0", () => {
  const shares = sharesOf([series(1, [1, 0, 4]), series(2, [3, 0, 0])], 3);
  expect(shares.map(({ values }) => Array.from(values))).toEqual([
    [25, 0, 100],
    [75, 0, 0],
  ]);
});

test("a line is interrupted at steps without a value", () => {
  const { line, area } = brokenLine(new Float64Array([10, 5, Number.NaN, 0, 10]), plot);
  expect(line.match(/M/g)?.length).toBe(2);
  expect(area.match(/z/g)?.length).toBe(2);
});

test("a single value between gaps is drawn as a dash", () => {
  expect(brokenLine(new Float64Array([Number.NaN, 5, Number.NaN, Number.NaN]), plot).line).toBe("M25 50h25");
});
