import { type ModelPrice, priceDays, pricesOn, type RankedPrice } from "../../domain/prices.ts";
import { dayNumberOf, minutesPerHour, msPerMinute, offsetMinutes } from "../../time/seoul.ts";
import type { ModelUsageQuery } from "./cost-contract.ts";

type Bucket = ModelUsageQuery["bucket"];

/** A part of a range of days, in whose periods all prices stay the same. Days or hours; `to` is exclusive. */
interface Part {
  from: number;
  to: number;
  priceOf: (model: string) => ModelPrice | undefined;
}

/** Days or hours that one read covers at most, so that it does not delay what is written. */
const mostPerRead: Readonly<Record<Bucket, number>> = { none: 31, day: 31, hour: 72 };
/** More rows of one read would delay responses. */
const rowsAtOnce = 1500;
const hoursPerDay = 24;

/**
 * Parts of a range of days, the latest first. A read that sums its periods up has as many rows however long it is; else each
 * part is as long as the number of rows in the part before allows, which the caller hands in. The first has what is to come.
 */
export function* partsOf(
  { first, now }: { first: number; now: number },
  bucket: Bucket,
  prices: readonly RankedPrice[],
): Generator<Part, undefined, number> {
  const perDay = bucket === "hour" ? hoursPerDay : 1;
  const shift = bucket === "hour" ? offsetMinutes / minutesPerHour : 0;
  const startOf = (day: number): number => day * perDay - shift;
  const starts = [first, ...priceDays(prices)].map(startOf);
  const end = startOf(dayNumberOf(now) + 1);
  const current = bucket === "hour" ? Math.floor(now / (minutesPerHour * msPerMinute)) : end - 1;
  let length = bucket === "none" ? mostPerRead.none : end - current;
  for (let to = end; to > startOf(first);) {
    const from = Math.max(to - length, ...starts.filter((start) => start < to));
    const rows = yield { from, to, priceOf: pricesOn(prices, Math.floor((from + shift) / perDay)) };
    if (bucket !== "none" && to === end) length = 1;
    to = from;
    if (bucket === "none") continue;
    if (rows > rowsAtOnce) length = Math.max(1, Math.floor(length / 2));
    else if (rows < rowsAtOnce / 3) length = Math.min(length * 2, mostPerRead[bucket]);
  }
  return undefined;
}
