import { expect, test } from "bun:test";
import { type RankedKey, rankKeys } from "../../../console/src/usage/key-ranking.ts";
import { type GroupId, type UsageBuckets, usageBucketsFrom } from "../../../console/src/usage/usage-buckets.ts";
import { at, bucketsBody, bucketsRequest } from "./bucket-bodies.ts";

/** A chart of keys with these output tokens, highest first. The first eight have series. */
function chartOf(...keys: readonly (readonly [id: number, output: number])[]): UsageBuckets {
  const body = bucketsBody(keys.map(([id, output]) => [id, [output, 0, 0, 0, 0]]));
  return usageBucketsFrom({ ...body, series: body.series.slice(0, 8) }, bucketsRequest, at(4));
}

const colourOf = (ranked: readonly RankedKey[], id: number): number | undefined =>
  ranked.find(({ key }) => key.id === id)?.colour;

test("keys keep the order of the API and have their totals by the chart's metric", () => {
  const chart = chartOf([2, 300], [3, 70], [1, 5]);
  const totals = (data: UsageBuckets): [GroupId, number][] =>
    rankKeys(data, []).map(({ key, total }) => [key.id, total]);
  expect(totals(chart)).toEqual([
    [2, 300],
    [3, 70],
    [1, 5],
  ]);
  expect(totals({ ...chart, metric: "total" })[0]).toEqual([2, 900]);
});

test("without data there are no keys", () => {
  expect(rankKeys(undefined, [])).toEqual([]);
});

test("keys with a series get a colour each, and the others are part of Other", () => {
  const ranked = rankKeys(chartOf(...Array.from({ length: 10 }, (_, n) => [n + 1, 100 - n] as const)), []);
  expect(ranked.map(({ colour }) => colour)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
});

test("keys keep their colours when others come above them, and a new one takes what became free", () => {
  const keys = Array.from({ length: 9 }, (_, n) => [n + 1, 100 - n] as const);
  const before = rankKeys(chartOf(...keys), []);
  const others = keys.filter(([id]) => id !== 3 && id !== 2);
  const after = rankKeys(chartOf([20, 900], [2, 500], ...others), before);
  expect(after.slice(0, 3).map(({ key }) => key.id)).toEqual([20, 2, 1]);
  expect([1, 2, 4, 8].map((id) => colourOf(after, id))).toEqual([1, 2, 4, 8]);
  expect(colourOf(after, 20)).toBe(colourOf(before, 3));
  expect(colourOf(after, 9)).toBe(0);
});
