import { expect, test } from "bun:test";
import fc from "fast-check";
import { bucketOf, Histogram, valueOfBucket } from "../../src/domain/histogram.ts";

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
      const histogram = new Histogram();
      for (const value of values) histogram.add(value);
      const sorted = values.toSorted((a, b) => a - b);
      const shares = [0.01, 0.5, 0.95, 0.99];
      for (const [index, found] of new Histogram(histogram.toText()).quantiles(shares).entries()) {
        const exact = sorted[Math.ceil(values.length * (shares[index] ?? 0)) - 1] ?? 0;
        expect(Math.abs(found - exact) / exact).toBeLessThan(0.05);
      }
    }),
  );
});

test("a histogram in text is the same after it was read, and sums hold all values", () => {
  const [one, other] = [new Histogram(), new Histogram()];
  for (const value of [1, 1, 50, 9000]) one.add(value);
  other.add(50);
  const text = one.toText();
  expect(new Histogram(text).toText()).toBe(text);
  expect([new Histogram().toText(), new Histogram("").toText()]).toEqual(["", ""]);
  one.addAll(other);
  const sum = new Histogram(text);
  sum.addText(other.toText());
  expect(sum.toText()).toBe(one.toText());
  expect([sum.count, new Histogram().count]).toEqual([5, 0]);
  expect(new Histogram().quantiles([0.5])).toEqual([0]);
});

test("a sum holds buckets of any number, in any order, of texts that are joined", () => {
  const sum = new Histogram("900:3  5:1 900:12 20000:7 ");
  expect(sum.toText()).toBe("5:1 900:15 20000:7");
  const other = new Histogram("7:2");
  other.addAll(sum);
  expect(other.toText()).toBe("5:1 7:2 900:15 20000:7");
  other.addAll(new Histogram());
  other.clear();
  other.addText("8:1");
  expect(other.toText()).toBe("8:1");
});

test("counts of consecutive buckets follow the first one's number", () => {
  const sum = new Histogram("10:1 9:22 12:4 40:5 41:6 0:7");
  expect(sum.toText()).toBe("0:7 9:22:1 12:4 40:5:6");
  sum.addText(sum.toText());
  sum.addText("11:1000000");
  expect(sum.toText()).toBe("0:14 9:44:2:1000000:8 40:10:12");
  const counts = fc.array(fc.tuple(fc.nat(700), fc.integer({ min: 1, max: 2 ** 48 })));
  fc.assert(
    fc.property(counts, (entries) => {
      const expected = [...new Map(entries)].toSorted(([a], [b]) => a - b);
      const text = Array.from(new Map(entries), (entry) => entry.join(":")).join(" ");
      expect(entriesOf(new Histogram(text).toText())).toEqual(expected);
    }),
  );
});

/** A run is one bucket after the other. */
const entriesOf = (text: string): [bucket: number, count: number][] =>
  text === ""
    ? []
    : text.split(" ").flatMap((run) => {
        const [first = 0, ...counts] = run.split(":").map(Number);
        return counts.map((count, at): [number, number] => [first + at, count]);
      });
