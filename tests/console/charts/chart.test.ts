import { describe, expect, test } from "bun:test";
import { barStep, timeTicks, valueTicks } from "../../../console/src/charts/scale.ts";
import { brokenLine, type Series, stackedBars, stepSums } from "../../../console/src/charts/shapes.ts";
import { dayMs, hourMs, minuteMs } from "../../../console/src/data/seoul-time.ts";

const from = Date.parse("2026-11-20T13:00:00+09:00");
const day = { from, to: from + dayMs };

describe("a bar", () => {
  test("is as wide as its bucket where there is room", () =>
    expect(barStep(day, 2 * minuteMs, 2160)).toBe(2 * minuteMs));

  test("is never narrower than three pixels", () => {
    for (const widthPx of [320, 700, 1000]) {
      const stepMs = barStep(day, 2 * minuteMs, widthPx);
      expect(widthPx / (dayMs / stepMs)).toBeGreaterThanOrEqual(3);
      expect(stepMs % (2 * minuteMs)).toBe(0);
    }
  });

  test("has a width even before the chart has one", () => expect(barStep(day, minuteMs, 0)).toBe(dayMs));
});

test.each([
  [104_000, [0, 25_000, 50_000, 75_000, 100_000, 125_000]],
  [100, [0, 20, 40, 60, 80, 100]],
  [7, [0, 2, 4, 6, 8]],
  [1, [0, 1]],
  [0, [0, 1]],
])("the axis up to %p is %p", (max, ticks) => expect(valueTicks(max, true)).toEqual(ticks));

test("time is labelled at Seoul's round hours, and midnight by its day", () => {
  const labels = timeTicks(day, 900).map(({ label }) => label);
  expect(labels).toEqual(["15:00", "18:00", "21:00", "21 Nov", "03:00", "06:00", "09:00", "12:00"]);
  expect(timeTicks({ from, to: from + hourMs }, 900)[1]?.label).toBe("13:10");
});

test("labels keep their distance at every width and range", () => {
  for (const spanMs of [hourMs, 6 * hourMs, dayMs, 7 * dayMs, 30 * dayMs]) {
    for (const widthPx of [300, 600, 1000]) {
      const ticks = timeTicks({ from, to: from + spanMs }, widthPx);
      expect(ticks.length * 80).toBeLessThanOrEqual(widthPx + 80);
    }
  }
});

const series = (id: number, values: number[]): Series => ({
  id,
  label: `${id}`,
  colour: id,
  values: new Float64Array(values),
});
const plot = { widthPx: 100, heightPx: 100, top: 10 };

test("bars stand on those below, and an empty step draws nothing", () => {
  const [lower, upper] = stackedBars([series(1, [5, 0]), series(2, [5, 10])], 2, plot);
  expect(lower).toBe("M0 50h48v50h-48z");
  expect(upper).toBe("M0 0h48v50h-48zM50 0h48v100h-48z");
  expect([...stepSums([series(1, [5, 0]), series(2, [5, 10])], 2)]).toEqual([10, 10]);
});

test("a line breaks where nothing was measured", () => {
  const { line, area } = brokenLine(new Float64Array([10, 5, Number.NaN, 0, 10]), plot);
  expect(line.match(/M/g)?.length).toBe(2);
  expect(area.match(/z/g)?.length).toBe(2);
});

test("a lone measurement is still seen", () => {
  expect(brokenLine(new Float64Array([Number.NaN, 5, Number.NaN, Number.NaN]), plot).line).toBe("M25 50h25");
});
