import { minuteMs } from "../lib/seoul-time.ts";
import type { TimeRange, TimeSpan } from "../lib/time-range.ts";
import type { UsageFilter } from "./usage-filters.ts";
import { sumsOf, type UsageFields, type UsageMetric, type UsageSums } from "./usage-sums.ts";

/** Of a key, team or user; a model has its name. */
export type GroupId = number | string;

/** What is asked for. It stays the same while time passes. */
export interface BucketsRequest {
  timeRange: TimeRange;
  filter: UsageFilter;
  /** What has a series. */
  by: "key" | "team" | "user" | "model";
  bucketMinutes: number;
  metric: UsageMetric;
  /** How many have a series of their own. */
  top: number;
  /** How many are listed with their sums. */
  list: number;
}

export interface ListedKey {
  id: GroupId;
  name: string;
  sums: UsageSums;
}

/** Those without a series, together. */
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
 * What a chart of usage draws. Its title and legend are made from it too, so that none of them belongs to other data.
 * Maps because the query library's store wraps plain objects and arrays in proxies.
 */
export interface UsageBuckets extends BucketSpan {
  request: BucketsRequest;
  metric: UsageMetric;
  /** Keys, or what it is by, with usage, also those that are not listed. */
  keyCount: number;
  sums: UsageSums;
  /** By id, highest first. */
  keys: ReadonlyMap<GroupId, ListedKey>;
  /** A value of the metric for each bucket, by id, highest first. */
  series: ReadonlyMap<GroupId, Float64Array>;
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
  keys: Columns & { id: GroupId[]; name: string[] };
  series: { key_id: GroupId; values: number[] }[];
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

const keysFrom = (columns: UsageBucketsBody["keys"]): Map<GroupId, ListedKey> =>
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
  if (before === undefined || before.request.by === "model" || now - before.wholeAt >= wholeEveryMs) return undefined;
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
