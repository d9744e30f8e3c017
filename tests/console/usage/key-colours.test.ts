import { expect, test } from "bun:test";
import { assignColours, colourCount } from "../../../console/src/usage/key-ranking.ts";

test("the first eight keys get a colour each, the rest none", () => {
  const colours = assignColours([11, 12, 13, 14, 15, 16, 17, 18, 19, 20], new Map());
  expect(colours.size).toBe(colourCount);
  expect(new Set(colours.values()).size).toBe(colourCount);
  expect(colours.has(19)).toBe(false);
});

test("a key keeps its colour when the order changes", () => {
  const before = assignColours([1, 2, 3], new Map());
  expect(assignColours([3, 1, 2], before)).toEqual(before);
});

test("a new key gets the colour that became free", () => {
  const before = assignColours([1, 2, 3, 4, 5, 6, 7, 8], new Map());
  const after = assignColours([1, 2, 3, 4, 5, 6, 7, 9], before);
  expect(after.get(9)).toBe(before.get(8) ?? Number.NaN);
  expect(after.get(1)).toBe(before.get(1) ?? Number.NaN);
});
