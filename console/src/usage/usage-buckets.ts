import { csv } from "../lib/csv.ts";
import { minuteMs, seoulTimestamp } from "../lib/seoul-time.ts";
import type { TimeRange, TimeSpan } from "../lib/time-range.ts";
import { sumsOf, type UsageFields, type UsageMetric, type UsageSums } from "./usage-sums.ts";

/** Which keys to show. */
export interface KeySelection {
  /** The key that the URL names; undefined: all keys. */
  key: string | undefined;
  /** Part of a name. */
  search: string;
  hiddenIds: readonly number[];
}

export const everyKey: KeySelection = { key: undefined, search: "", hiddenIds: [] };

/** Whether a key is among the shown ones, as the API decides it. */
export const matchesSelection = ({ key, search, hiddenIds }: KeySelection, id: number, name: string): boolean =>
  (key === undefined || String(id) === key) &&
  name.toLowerCase().includes(search.trim().toLowerCase()) &&
  !hiddenIds.includes(id);

/** The parameters of the API. No key has the id 0. */
export const selectionParameters = ({
  key,
  search,
  hiddenIds,
}: KeySelection): { key_id?: number; q?: string; hide?: string } => ({
  ...(key !== undefined && { key_id: /^\d{1,15}$/.test(key) ? Number(key) : 0 }),
  ...(search.trim() !== "" && { q: search.trim().slice(0, 120) }),
  ...(hiddenIds.length > 0 && { hide: hiddenIds.slice(0, 1000).join(",") }),
});

/** What is asked for. It stays the same while time passes. */
export interface BucketsRequest extends KeySelection {
  timeRange: TimeRange;
  bucketMinutes: number;
  metric: UsageMetric;
  /** How many keys have a series of their own. */
  top: number;
  /** How many keys are listed with their sums. */
  list: number;
}

export interface ListedKey {
  id: number;
  name: string;
  sums: UsageSums;
}

/** The keys without a series, together. */
export interface OtherKeys {
  keyCount: number;
  sums: UsageSums;
  values: Float64Array;
}

export interface BucketSpan {
  /** Whole buckets. */
  span: TimeSpan;
  bucketMinutes: number;
}

/**
 * What a chart of usage draws. Its title, figures, legend and CSV are made from it too, so that none of them belongs to other data.
 * Maps because the query library's store wraps plain objects and arrays in proxies.
 */
export interface UsageBuckets extends BucketSpan {
  request: BucketsRequest;
  metric: UsageMetric;
  /** Keys with usage, also those that are hidden or not listed. */
  keyCount: number;
  /** Over all keys that are not hidden. */
  sums: UsageSums;
  /** By id, highest first; hidden ones too. */
  keys: ReadonlyMap<number, ListedKey>;
  /** A value of the metric for each bucket, by key id, highest first. */
  series: ReadonlyMap<number, Float64Array>;
  other: OtherKeys;
  /** Server time, epoch milliseconds. */
  fetchedAt: number;
  /** When all buckets were fetched, not only the last ones. */
  wholeAt: number;
}

type Columns = { [Field in keyof UsageFields]: number[] };

/** The body of `GET /api/usage/chart`. */
export interface UsageBucketsBody extends UsageFields {
  from: string;
  to: string;
  bucket_minutes: number;
  first_bucket: string;
  key_count: number;
  keys: Columns & { id: number[]; name: string[] };
  series: { key_id: number; values: number[] }[];
  other: UsageFields & { key_count: number; values: number[] };
}

/** @param before what the client had when it sent the request; its buckets precede those of the body */
export function usageBucketsFrom(
  body: UsageBucketsBody,
  request: BucketsRequest,
  fetchedAt: number,
  before?: UsageBuckets,
): UsageBuckets {
  const span = { from: Date.parse(body.from), to: Date.parse(body.to) };
  const bucketMs = body.bucket_minutes * minuteMs;
  const first = Math.round((Date.parse(body.first_bucket) - span.from) / bucketMs);
  const column = (values: readonly number[], earlier: Float64Array | undefined): Float64Array => {
    const joined = new Float64Array(Math.round((span.to - span.from) / bucketMs));
    const gone = before === undefined ? 0 : Math.round((span.from - before.span.from) / bucketMs);
    if (first > 0 && earlier !== undefined) joined.set(earlier.subarray(gone, gone + first));
    joined.set(values, first);
    return joined;
  };
  return {
    request,
    span,
    bucketMinutes: body.bucket_minutes,
    metric: request.metric,
    keyCount: body.key_count,
    sums: sumsOf(body),
    keys: keysFrom(body.keys),
    series: new Map(body.series.map(({ key_id, values }) => [key_id, column(values, before?.series.get(key_id))])),
    other: {
      keyCount: body.other.key_count,
      sums: sumsOf(body.other),
      values: column(body.other.values, before?.other.values),
    },
    fetchedAt,
    wholeAt: first > 0 && before !== undefined ? before.wholeAt : fetchedAt,
  };
}

const keysFrom = (columns: UsageBucketsBody["keys"]): Map<number, ListedKey> =>
  new Map(
    columns.id.map((id, index) => {
      const sums = {
        requests: columns.request_count[index] ?? 0,
        input: columns.input_tokens[index] ?? 0,
        output: columns.output_tokens[index] ?? 0,
      };
      return [id, { id, name: columns.name[index] ?? "", sums }];
    }),
  );

/** Minute counts are written a moment after their minute, and later while the database is slow. */
const overlapMs = 10 * minuteMs;
const wholeEveryMs = 5 * minuteMs;

/** What to request only the last buckets for; undefined: all are due. @param span the one to request */
export function sinceOf(before: UsageBuckets | undefined, span: TimeSpan, now: number): number | undefined {
  if (before === undefined || now - before.wholeAt >= wholeEveryMs) return undefined;
  const since = before.fetchedAt - overlapMs;
  // At midnight, yesterday becomes a day of which `before` has nothing.
  return before.span.to >= Math.min(since, span.to) ? since : undefined;
}

/** The values of the buckets in steps of `stepMs` from the span's start. */
export function inSteps(values: Float64Array, { span, bucketMinutes }: UsageBuckets, stepMs: number): Float64Array {
  const bucketMs = bucketMinutes * minuteMs;
  if (stepMs === bucketMs) return values;
  const steps = new Float64Array(Math.ceil((span.to - span.from) / stepMs));
  for (const [index, value] of values.entries()) {
    const step = Math.floor((index * bucketMs) / stepMs);
    steps[step] = (steps[step] ?? 0) + value;
  }
  return steps;
}

/** The sum of the buckets in a part of the span. */
export function sumWithin(values: Float64Array, { span, bucketMinutes }: UsageBuckets, part: TimeSpan): number {
  const indexOf = (at: number): number => Math.max(0, Math.round((at - span.from) / (bucketMinutes * minuteMs)));
  return values.subarray(indexOf(part.from), indexOf(part.to)).reduce((sum, value) => sum + value, 0);
}

/** The id in the URL; undefined if it is none. */
export const keyIdOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d{0,14}$/.test(text) ? Number(text) : undefined;

/** What one key, or the keys without a series, used in a bucket. */
export interface UsagePoint {
  bucketStart: string;
  key: { id: number; name: string } | undefined;
  sums: UsageSums;
}

/**
 * The points of a chart, by time, then by key. Keys that do not have a series in each metric are one.
 * @param of the same buckets by each metric
 */
export function pointsOf(of: Record<keyof UsageSums, UsageBuckets>): UsagePoint[] {
  const { span, bucketMinutes, series, keys } = of.requests;
  const ids = [...series.keys()].filter((id) => of.input.series.has(id) && of.output.series.has(id));
  const others = mapMetrics(of, (buckets) => {
    const sum = buckets.other.values.slice();
    for (const [id, values] of buckets.series) {
      if (!ids.includes(id)) for (const [index, value] of values.entries()) sum[index] = (sum[index] ?? 0) + value;
    }
    return sum;
  });
  const columns = [
    ...ids
      .toSorted((a, b) => a - b)
      .map((id) => ({
        key: { id, name: keys.get(id)?.name ?? "" },
        values: mapMetrics(of, (buckets) => buckets.series.get(id)),
      })),
    { key: undefined, values: others },
  ];
  return Array.from(of.requests.other.values, (_, index) => {
    const bucketStart = seoulTimestamp(span.from + index * bucketMinutes * minuteMs);
    return columns
      .map(({ key, values }) => ({ bucketStart, key, sums: mapMetrics(values, (column) => column?.[index] ?? 0) }))
      .filter(({ sums }) => sums.requests + sums.input + sums.output > 0);
  }).flat();
}

const mapMetrics = <From, To>(
  of: Record<keyof UsageSums, From>,
  map: (from: From) => To,
): Record<keyof UsageSums, To> => ({ requests: map(of.requests), input: map(of.input), output: map(of.output) });

/** With the names of the API. */
export const usagePointsCsv = (points: readonly UsagePoint[]): string =>
  csv(
    ["bucket_start", "key_id", "key_name", "request_count", "input_tokens", "output_tokens"],
    points.map(({ bucketStart, key, sums }) => [
      bucketStart,
      key?.id ?? "",
      key?.name ?? "Other",
      sums.requests,
      sums.input,
      sums.output,
    ]),
  );
