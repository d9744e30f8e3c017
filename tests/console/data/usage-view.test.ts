import { expect, test } from "bun:test";
import type { RankedKey } from "../../../console/src/data/key-ranking.ts";
import { isHidden, isUsageView, otherId, rankedIn } from "../../../console/src/data/usage-view.ts";

const ranked: RankedKey[] = Array.from({ length: 10 }, (_, index) => ({
  key: { id: index + 1, name: `key ${index + 1}`, starts: [], requests: [], input: [], output: [] },
  total: 100 - index,
  colour: index < 8 ? index + 1 : 0,
}));
const colours = (all: readonly RankedKey[]): number[] => all.map(({ colour }) => colour);

test("the stacked view keeps all colours; Top 5 and Lines draw the keys after the fifth as part of Other", () => {
  expect(colours(rankedIn("stacked", ranked))).toEqual(colours(ranked));
  expect(colours(rankedIn("top5", ranked))).toEqual([1, 2, 3, 4, 5, 0, 0, 0, 0, 0]);
  expect(colours(rankedIn("lines", ranked))).toEqual([1, 2, 3, 4, 5, 0, 0, 0, 0, 0]);
});

test("hiding Other hides the keys without a colour of their own", () => {
  const hidden = (ids: number[]): number[] =>
    ranked.filter((one) => isHidden(one, new Set(ids))).map(({ key }) => key.id);
  expect(hidden([otherId])).toEqual([9, 10]);
  expect(hidden([2, 10])).toEqual([2, 10]);
});

test("only known names are views", () => {
  expect(["lines", "toString", undefined, 5].map(isUsageView)).toEqual([true, false, false, false]);
});
