import { createMemo } from "solid-js";
import { dayMs } from "./seoul-time.ts";
import { type BucketQuery, chosenSpan, sameQuery, type TimeRange } from "./time-range.ts";

/** A response, with the query that it belongs to. */
export interface FetchedBuckets extends BucketQuery {
  /** Server time, epoch milliseconds. */
  fetchedAt: number;
}

/** The last good response, and the time range that it shows. */
export interface DrawnData<T extends FetchedBuckets> {
  data: T;
  timeRange: TimeRange;
}

/**
 * What a chart draws: while a range loads or after it failed, still the range before. Everything beside the chart reads
 * the time range from here too, so that no label belongs to other data than its value.
 * @param fetched undefined before the first response and after a failed change of range
 */
export function createDrawnData<T extends FetchedBuckets>(
  fetched: () => T | undefined,
  timeRange: () => TimeRange,
  requested: () => BucketQuery,
): () => DrawnData<T> | undefined {
  return createMemo<DrawnData<T> | undefined>((before) => {
    const data = fetched();
    if (data === undefined) return before;
    const shows = before === undefined || sameQuery(data, requested()) || covers(data, timeRange());
    return { data, timeRange: shows ? timeRange() : before.timeRange };
  });
}

/** Whether the data reach back far enough, as they do for a zoom. Its finer buckets then load. */
const covers = ({ fetchedAt, days }: FetchedBuckets, timeRange: TimeRange): boolean =>
  chosenSpan(timeRange, fetchedAt).from >= fetchedAt - days * dayMs;
