// What the features share that shows nothing: time, formats, the session, what the browser remembers, and series
// (here): what a chart or a table holds. A leaf: it knows neither the API nor what shows it.
//
// It keeps true: times are epoch milliseconds; ages are by the server's clock. Days are Seoul's in any zone; clock
// times are of the zone that is chosen. What may be a secret gets into no address (`url-parameters.ts`).

import type { UseQueryResult } from "@tanstack/solid-query";
import { createMemo } from "solid-js";

/** A response, with the request that it belongs to. */
export interface Fetched<Request> {
  request: Request;
  /** Server time, epoch milliseconds. */
  fetchedAt: number;
}

interface SeriesSource<Range, Request, Data> {
  /** What to show. */
  range: () => Range;
  /** The width of the plot, pixels: loading starts once there is one. Left out without a plot. */
  width?: () => number;
  /** What to request for a range. */
  request: (range: Range) => Request;
  fetch: (requested: () => Request, isMeasured: () => boolean) => UseQueryResult<Data>;
  /** Whether data for another range hold all of this one; by default they do not. */
  covers?: (data: Data, range: Range) => boolean;
}

/**
 * What a chart or a table draws: the last good response, and the range that it belongs to.
 *
 * Before the first response there are no data. While another range loads, and after it failed, the data before stay on the
 * screen with their own range. Only data that hold the new range, as they do for a zoom, are drawn in it at once, until
 * the finer ones arrive.
 *
 * Everything beside a chart reads data and range from here too, so that no label belongs to other data than its value.
 */
export function createSeries<Range, Request, Data extends Fetched<Request>>({
  range,
  width,
  request,
  fetch: useFetched,
  covers,
}: SeriesSource<Range, Request, Data>) {
  const requested = createMemo(() => request(range()), undefined, { equals: sameRequest });
  const query = useFetched(requested, () => width === undefined || width() > 0);
  const isFor = (data: Data | undefined): boolean => data !== undefined && sameRequest(data.request, requested());
  // It depends only on the query, not on what is requested: with a choice that has just changed, a legend would otherwise
  // first be drawn from the old data, and lose the row that has the focus.
  const data = createMemo<Data | undefined>((before) => query.data ?? before);
  const shownRange = createMemo<Range | undefined>((before) => {
    const shown = data();
    if (shown === undefined) return undefined;
    return before === undefined || isFor(shown) || covers?.(shown, range()) === true ? range() : before;
  });
  /** Whether the data are what is requested. */
  const isCurrent = (): boolean => isFor(data());
  return {
    query,
    requested,
    data,
    /** The range that the data show. */
    range: shownRange,
    /** When the data were fetched, server time. */
    fetchedAt: () => data()?.fetchedAt,
    isCurrent,
    isLoading: () => !isCurrent() && !query.isError,
  };
}

/** Requests are plain data, their properties always in the same order. */
export const sameRequest = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);
