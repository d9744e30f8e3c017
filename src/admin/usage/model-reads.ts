import { type ModelPrice, priceDays, pricesOn, type RankedPrice } from "../../domain/prices.ts";
import { dayNumberOf, type Days, minutesPerHour, msPerMinute, offsetMinutes, splitByMonths } from "../../time/seoul.ts";
import type { ModelUsageQuery } from "./cost-contract.ts";

type Bucket = ModelUsageQuery["bucket"];

/** A part of a range of days, in whose periods all prices stay the same. Days or hours; `to` is exclusive. */
interface Part extends Days {
  /** The rows that are read; those of months lie within it. */
  unit: "hour" | "day" | "month";
  priceOf: (model: string) => ModelPrice | undefined;
}

/** Days or hours that one read covers at most, so that it does not delay what is written. */
const mostPerRead: Readonly<Record<Bucket, number>> = { none: 10, day: 31, hour: 72 };
/** More rows of one read would delay responses. */
const rowsAtOnce = 1500;
const hoursPerDay = 24;

/**
 * Parts of a range of days, the latest first. Each is as long as the number of rows in the part before allows, which the
 * caller hands in; the first has what is to come.
 */
export function* partsOf(
  { first, now }: { first: number; now: number },
  bucket: Bucket,
  prices: readonly RankedPrice[],
): Generator<Part, undefined, number> {
  if (bucket === "none") return yield* wholeParts({ from: first, to: dayNumberOf(now) + 1 }, prices);
  const unit = bucket;
  const perDay = unit === "hour" ? hoursPerDay : 1;
  const shift = unit === "hour" ? offsetMinutes / minutesPerHour : 0;
  const startOf = (day: number): number => day * perDay - shift;
  const starts = [first, ...priceDays(prices)].map(startOf);
  const end = startOf(dayNumberOf(now) + 1);
  const current = unit === "hour" ? Math.floor(now / (minutesPerHour * msPerMinute)) : end - 1;
  let length = end - current;
  for (let to = end; to > startOf(first);) {
    const from = Math.max(to - length, ...starts.filter((start) => start < to));
    const rows = yield { unit, from, to, priceOf: pricesOn(prices, Math.floor((from + shift) / perDay)) };
    if (to === end) length = 1;
    to = from;
    if (rows > rowsAtOnce) length = Math.max(1, Math.floor(length / 2));
    else if (rows < rowsAtOnce / 3) length = Math.min(length * 2, mostPerRead[unit]);
  }
  return undefined;
}

/** Those of a range that is summed up as a whole: a read has as many rows however long it is. */
function* wholeParts(range: Days, prices: readonly RankedPrice[]): Generator<Part, undefined, number> {
  const starts = [range.from, ...priceDays(prices)];
  for (let end = range.to; end > range.from;) {
    const start = Math.max(...starts.filter((day) => day < end));
    const priceOf = pricesOn(prices, start);
    for (const { unit, from, to } of splitByMonths({ from: start, to: end })) {
      const most = unit === "month" ? to - from : mostPerRead.none;
      for (let last = to; last > from; last -= most)
        yield { unit, from: Math.max(from, last - most), to: last, priceOf };
    }
    end = start;
  }
  return undefined;
}
