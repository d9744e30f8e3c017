import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  addHistogram,
  addValue,
  bucketOf,
  countOf,
  decodeHistogram,
  encodeHistogram,
  type Histogram,
  quantilesOf,
  valueOfBucket,
} from "../src/histogram.ts";

test("the middle of a value's bucket is at most 5 % off, from a tenth of a millisecond to weeks", () => {
  fc.assert(
    fc.property(fc.double({ min: 0.1, max: 2e9, noNaN: true }), (value) => {
      expect(Math.abs(valueOfBucket(bucketOf(value)) - value) / value).toBeLessThan(0.05);
    }),
  );
});

test("buckets rise with their values, without a gap", () => {
  for (let bucket = 0; bucket < 700; bucket++) expect(bucketOf(valueOfBucket(bucket))).toBe(bucket);
  expect([bucketOf(0), bucketOf(-5), valueOfBucket(0)]).toEqual([0, 0, 0]);
});

test("quantiles of any values are at most 5 % off those of the sorted values", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 1, max: 1e6, noNaN: true }), { minLength: 1 }), (values) => {
      const histogram: Histogram = new Map();
      for (const value of values) addValue(histogram, value);
      const sorted = values.toSorted((a, b) => a - b);
      const shares = [0.01, 0.5, 0.95, 0.99];
      for (const [index, found] of quantilesOf(histogram, shares).entries()) {
        const exact = sorted[Math.ceil(values.length * (shares[index] ?? 0)) - 1] ?? 0;
        expect(Math.abs(found - exact) / exact).toBeLessThan(0.05);
      }
    }),
  );
});

test("a histogram is the same after it was written as text, and sums hold all values", () => {
  const one: Histogram = new Map();
  const other: Histogram = new Map();
  for (const value of [1, 1, 50, 9000]) addValue(one, value);
  addValue(other, 50);
  expect(decodeHistogram(encodeHistogram(one))).toEqual(one);
  expect([encodeHistogram(new Map()), decodeHistogram("").size]).toEqual(["", 0]);
  addHistogram(one, other);
  expect(countOf(one)).toBe(5);
  expect(quantilesOf(new Map(), [0.5])).toEqual([0]);
});
