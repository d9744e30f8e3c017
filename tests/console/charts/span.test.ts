import { describe, expect, test } from "bun:test";
import { scaledSpan, shiftedSpan } from "../../../console/src/charts/span.ts";

const span = { from: 1000, to: 2000 };
const limits = { stepMs: 100, now: 2150 };

describe("a span that is moved", () => {
  test("goes into the past by whole steps", () =>
    expect(shiftedSpan(span, -3, limits)).toEqual({ from: 700, to: 1700 }));

  test("ends in the step of now at the latest", () =>
    expect(shiftedSpan(span, 9, limits)).toEqual({ from: 1200, to: 2200 }));

  test("that ends now does not move into the future", () =>
    expect(shiftedSpan(span, 9, { ...limits, now: 1990 })).toEqual(span));
});

describe("a span that is scaled", () => {
  test("keeps its middle", () =>
    expect(scaledSpan(span, 0.4, { ...limits, middle: 1500 })).toEqual({ from: 1300, to: 1700 }));

  test("is around the given time", () =>
    expect(scaledSpan(span, 0.4, { ...limits, middle: 1200 })).toEqual({ from: 1000, to: 1400 }));

  test("has at least two steps", () => {
    const { from, to } = scaledSpan(span, 0.01, { ...limits, middle: 1500 });
    expect(to - from).toBe(200);
  });

  test("does not reach beyond now", () =>
    expect(scaledSpan(span, 2, { ...limits, middle: 1500 })).toEqual({ from: 200, to: 2200 }));
});
