import { describe, expect, test } from "bun:test";
import { minuteMs } from "../../../console/src/lib/seoul-time.ts";
import { sameRequest } from "../../../console/src/lib/series.ts";
import { chosenSpan } from "../../../console/src/lib/time-range.ts";
import {
  inSteps,
  sinceOf,
  sumWithin,
  type UsageBuckets,
  usageBucketsFrom,
} from "../../../console/src/usage/usage-buckets.ts";
import { filterParameters } from "../../../console/src/usage/usage-filters.ts";
import { at, bucketsBody, bucketsRequest } from "./bucket-bodies.ts";

const whole = usageBucketsFrom(
  bucketsBody(
    [
      [7, [1, 2, 3, 4, 5]],
      [3, [0, 0, 9, 0, 0]],
    ],
    { otherKeys: 2, other: [1, 1, 1, 1, 1] },
  ),
  bucketsRequest,
  at(4),
);
const columnsOf = (buckets: UsageBuckets): Record<string, number[]> => ({
  ...Object.fromEntries(Array.from(buckets.series, ([id, values]) => [id, [...values]])),
  other: [...buckets.other.values],
});

describe("a whole response", () => {
  test("becomes columns by key, and keys in its order", () => {
    expect(columnsOf(whole)).toEqual({ 7: [1, 2, 3, 4, 5], 3: [0, 0, 9, 0, 0], other: [1, 1, 1, 1, 1] });
    expect([...whole.keys.keys()]).toEqual([7, 3]);
    expect(whole.keys.get(3)).toEqual({ id: 3, name: "key 3", sums: { requests: 1, input: 18, output: 9 } });
    expect(whole).toMatchObject({ keyCount: 4, span: { from: at(0), to: at(5) }, wholeAt: at(4) });
  });

  test("without other keys has zeros for them", () => {
    expect([...usageBucketsFrom(bucketsBody([[1, [1, 2, 3, 4, 5]]]), bucketsRequest, at(4)).other.values]).toEqual([
      0, 0, 0, 0, 0,
    ]);
  });
});

describe("a response with the last buckets", () => {
  const last = bucketsBody(
    [
      [3, [0, 50]],
      [7, [6, 7]],
    ],
    { from: 2, to: 6, first: 4, otherKeys: 1, other: [2, 3] },
  );

  test("continues the buckets before, less those that left the range", () => {
    const next = usageBucketsFrom(last, bucketsRequest, at(5), whole);
    expect(columnsOf(next)).toEqual({ 3: [9, 0, 0, 50], 7: [3, 4, 6, 7], other: [1, 1, 2, 3] });
    expect([next.fetchedAt, next.wholeAt]).toEqual([at(5), at(4)]);
  });

  test("that is whole after all replaces them", () => {
    const next = usageBucketsFrom(bucketsBody([[8, [1, 1, 1, 1]]], { from: 2, to: 6 }), bucketsRequest, at(5), whole);
    expect(columnsOf(next)).toEqual({ 8: [1, 1, 1, 1], other: [0, 0, 0, 0] });
    expect(next.wholeAt).toBe(at(5));
  });
});

test("a refresh fetches the last ten minutes, and every five minutes everything", () => {
  const span = { from: at(0), to: at(5) };
  expect(sinceOf(undefined, span, at(5))).toBeUndefined();
  expect(sinceOf(whole, span, at(5))).toBe(at(4 - 10));
  expect(sinceOf({ ...whole, fetchedAt: at(8) }, span, at(8.9))).toBe(at(-2));
  expect(sinceOf({ ...whole, fetchedAt: at(8) }, span, at(9))).toBeUndefined();
  // Names of models have no place in an address.
  expect(sinceOf({ ...whole, request: { ...whole.request, by: "model" } }, span, at(5))).toBeUndefined();
});

test("a refresh fetches everything once yesterday is another day", () => {
  const midnight = Date.parse("2026-11-22T00:00:00+09:00");
  const yesterdayAt = (now: number) => chosenSpan({ preset: "yesterday", zoom: undefined }, now);
  const fetchedAt = midnight - 10_000;
  const before = { ...whole, span: yesterdayAt(fetchedAt), fetchedAt, wholeAt: fetchedAt };
  expect(sinceOf(before, yesterdayAt(midnight - 1), midnight - 1)).toBe(fetchedAt - 10 * minuteMs);
  expect(sinceOf(before, yesterdayAt(midnight), midnight)).toBeUndefined();
});

test("wider steps have the same total", () => {
  const values = Float64Array.of(1, 2, 3, 4, 5);
  expect([...inSteps(values, whole, minuteMs)]).toEqual([1, 2, 3, 4, 5]);
  expect([...inSteps(values, whole, 2 * minuteMs)]).toEqual([3, 7, 5]);
  expect([...inSteps(values, whole, 7 * minuteMs)]).toEqual([15]);
});

test("the end of a part is exclusive", () => {
  const values = Float64Array.of(1, 2, 3, 4, 5);
  expect(sumWithin(values, whole, { from: at(1), to: at(3) })).toBe(5);
  expect(sumWithin(values, whole, { from: at(-5), to: at(50) })).toBe(15);
});

test("requests that differ in anything are not the same", () => {
  expect(sameRequest(bucketsRequest, structuredClone(bucketsRequest))).toBe(true);
  for (const other of [{ filter: { key: "1" } }, { by: "team" }, { metric: "input" }, { bucketMinutes: 2 }] as const)
    expect(sameRequest(bucketsRequest, { ...bucketsRequest, ...other })).toBe(false);
});

test("the filters of the page are those of the API", () => {
  expect(filterParameters({})).toEqual({});
  expect(filterParameters({ key: "12", team: "0", user: "3", model: "m", tag: "t", owner: "o" })).toEqual({
    key_id: 12,
    team_id: 0,
    user_id: 3,
    model: "m",
    tag: "t",
    owner: "o",
  });
  for (const key of ["abc", "-1", "1e3", "9".repeat(40)])
    expect(filterParameters({ key })).toEqual({ key_id: Number.MAX_SAFE_INTEGER });
});
