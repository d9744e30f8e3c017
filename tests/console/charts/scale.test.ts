import { describe, expect, test } from "bun:test";
import { timeTicks, valueTicks, xOf } from "../../../console/src/charts/scale.ts";
import { dayMs, hourMs, minuteMs } from "../../../console/src/lib/seoul-time.ts";
import { chooseTimeZone } from "../../../console/src/lib/time-zone.ts";
import { barStep } from "../../../console/src/lib/time-range.ts";

const from = Date.parse("2026-11-20T13:00:00+09:00");
const day = { from, to: from + dayMs };

describe("a bar", () => {
  test("is as wide as its bucket if there is space", () => expect(barStep(day, 2 * minuteMs, 2160)).toBe(2 * minuteMs));

  test("is never narrower than three pixels", () => {
    for (const widthPx of [320, 700, 1000]) {
      const stepMs = barStep(day, 2 * minuteMs, widthPx);
      expect(widthPx / (dayMs / stepMs)).toBeGreaterThanOrEqual(3);
      expect(stepMs % (2 * minuteMs)).toBe(0);
    }
  });

  test("has a width before the chart has one", () => expect(barStep(day, minuteMs, 0)).toBe(dayMs));
});

test.each([
  [104_000, [0, 25_000, 50_000, 75_000, 100_000, 125_000]],
  [100, [0, 20, 40, 60, 80, 100]],
  [7, [0, 2, 4, 6, 8]],
  [1, [0, 1]],
  [0, [0]],
])("the axis up to %p is %p", (max, ticks) => expect(valueTicks(max, true)).toEqual(ticks));

test("time ticks are at round Seoul hours, and midnight is labelled with its day", () => {
  const labels = timeTicks(day, 900).map(({ label }) => label);
  expect(labels).toEqual(["15:00", "18:00", "21:00", "21 Nov", "03:00", "06:00", "09:00", "12:00"]);
  expect(timeTicks({ from, to: from + hourMs }, 900)[1]?.label).toBe("13:10");
});

test("time ticks are at round hours of the chosen zone", () => {
  chooseTimeZone("utc");
  const labels = timeTicks(day, 900).map(({ label }) => label);
  chooseTimeZone("kst");
  expect(labels).toEqual(["06:00", "09:00", "12:00", "15:00", "18:00", "21:00", "21 Nov", "03:00"]);
});

test("the labels of time ticks do not overlap at any width, span and season", () => {
  const winter = Date.parse("2026-01-04T13:00:00+09:00");
  for (const start of [from, winter]) {
    for (const spanMs of [hourMs, 6 * hourMs, dayMs, 7 * dayMs, 30 * dayMs]) {
      for (const widthPx of [200, 276, 300, 600, 1000]) {
        const span = { from: start, to: start + spanMs };
        const labels = timeTicks(span, widthPx).map(({ at, label }) => ({ x: xOf(at, span, widthPx), label }));
        expect(labels.length).toBeGreaterThan(2);
        for (const [index, { x, label }] of labels.entries()) {
          const next = labels[index + 1];
          if (next === undefined) continue;
          expect(next.x - x).toBeGreaterThan(3 * (label.length + next.label.length));
        }
      }
    }
  }
});

test("a phone has a time tick every six hours of a day: every three, labels would touch", () => {
  const labels = timeTicks(day, 276).map(({ label }) => label);
  expect(labels).toEqual(["18:00", "21 Nov", "06:00", "12:00"]);
});
