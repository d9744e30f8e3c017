import { expect, test } from "bun:test";
import { isUsageView, otherLabel, usageViews } from "../../../console/src/usage/usage-view.ts";

test("Top 5 and Lines draw the keys after the fifth as part of Other, the others those after the eighth", () => {
  const counts = Object.entries(usageViews).map(([view, { topCount }]) => [view, topCount]);
  expect(Object.fromEntries(counts)).toEqual({ stacked: 8, top5: 5, lines: 5, share: 8 });
});

test("Other names how many keys it has", () => {
  expect([otherLabel(1), otherLabel(1455)]).toEqual(["Other (1 key)", "Other (1,455 keys)"]);
});

test("only known names are views", () => {
  expect(["lines", "toString", undefined, 5].map(isUsageView)).toEqual([true, false, false, false]);
});
