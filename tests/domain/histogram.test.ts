import { expect, test } from "bun:test";
import fc from "fast-check";
import {
  addEncoded,
  addHistogram,
  addSum,
  addValue,
  bucketOf,
  clearSum,
  countOf,
  decodeHistogram,
  encodeHistogram,
  encodeSum,
  type Histogram,
  type HistogramSum,
  quantilesOf,
  valueOfBucket,
} from "../../src/domain/histogram.ts";

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
      for (const [index, found] of quantilesOf(decodeHistogram(encodeHistogram(histogram)), shares).entries()) {
        const exact = sorted[Math.ceil(values.length * (shares[index] ?? 0)) - 1] ?? 0;
        expect(Math.abs(found - exact) / exact).toBeLessThan(0.05);
      }
    }),
  );
});

test("a histogram in text is the same after it was read, and sums hold all values", () => {
  const one: Histogram = new Map();
  const other: Histogram = new Map();
  for (const value of [1, 1, 50, 9000]) addValue(one, value);
  addValue(other, 50);
  const text = encodeHistogram(one);
  expect(encodeSum(decodeHistogram(text))).toBe(text);
  expect([encodeHistogram(new Map()), encodeSum(decodeHistogram(""))]).toEqual(["", ""]);
  addHistogram(one, other);
  const sum = decodeHistogram(text);
  addEncoded(sum, encodeHistogram(other));
  expect(encodeSum(sum)).toBe(encodeHistogram(one));
  expect([countOf(sum), countOf(decodeHistogram(""))]).toEqual([5, 0]);
  expect(quantilesOf(decodeHistogram(""), [0.5])).toEqual([0]);
});

test("a sum holds buckets of any number, in any order, of texts that are joined", () => {
  const sum = decodeHistogram("900:3  5:1 900:12 20000:7 ");
  expect(encodeSum(sum)).toBe("5:1 900:15 20000:7");
  const other = decodeHistogram("7:2");
  addSum(other, sum);
  expect(encodeSum(other)).toBe("5:1 7:2 900:15 20000:7");
  clearSum(other);
  addEncoded(other, "8:1");
  expect(encodeSum(other)).toBe("8:1");
});

test("counts of consecutive buckets follow the first one's number", () => {
  const sum = decodeHistogram("10:1 9:22 12:4 40:5 41:6 0:7");
  expect(encodeSum(sum)).toBe("0:7 9:22:1 12:4 40:5:6");
  addEncoded(sum, encodeSum(sum));
  addEncoded(sum, "11:1000000");
  expect(encodeSum(sum)).toBe("0:14 9:44:2:1000000:8 40:10:12");
  const counts = fc.array(fc.tuple(fc.nat(700), fc.integer({ min: 1, max: 2 ** 48 })));
  fc.assert(
    fc.property(counts, (entries) => {
      const histogram: Histogram = new Map(entries);
      expect(entriesOf(decodeHistogram(encodeSum(decodeHistogram(encodeHistogram(histogram)))))).toEqual(
        [...histogram].toSorted(([a], [b]) => a - b),
      );
    }),
  );
});

const entriesOf = ({ counts }: HistogramSum): [number, number][] =>
  [...counts.entries()].filter(([, count]) => count > 0);
