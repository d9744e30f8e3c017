import { csv } from "./csv.ts";
import { seoulTimestamp } from "./seoul-time.ts";
import type { TimeSpan } from "./time-range.ts";

export const usageMetrics = {
  output: { label: "Output tokens", short: "Output" },
  input: { label: "Input tokens", short: "Input" },
  total: { label: "Total tokens", short: "Total" },
  requests: { label: "Requests", short: "Requests" },
} as const;

export type UsageMetric = keyof typeof usageMetrics;

export const isUsageMetric = (text: unknown): text is UsageMetric =>
  typeof text === "string" && Object.hasOwn(usageMetrics, text);

/** A point of `GET /api/usage/history`. */
export interface UsagePoint {
  bucket_start: string;
  key_id: number;
  key_name: string;
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

export interface UsageSums {
  requests: number;
  input: number;
  output: number;
}

/** One key's buckets as columns, oldest first. */
export interface KeyHistory {
  id: number;
  name: string;
  /** Epoch milliseconds. */
  starts: number[];
  requests: number[];
  input: number[];
  output: number[];
}

/** By key id. A Map because the query library's store wraps plain objects in proxies, and there may be 200,000 points. */
export type UsageHistory = ReadonlyMap<number, KeyHistory>;

export function usageHistoryFrom(points: readonly UsagePoint[]): UsageHistory {
  const history = new Map<number, KeyHistory>();
  // The points of a bucket are adjacent and share its timestamp. Parsing it once saves most of the work.
  let timestamp = "";
  let start = 0;
  for (const point of points) {
    if (point.bucket_start !== timestamp) {
      timestamp = point.bucket_start;
      start = Date.parse(timestamp);
    }
    const key = keyIn(history, point);
    key.starts.push(start);
    key.requests.push(point.request_count);
    key.input.push(point.input_tokens);
    key.output.push(point.output_tokens);
  }
  return history;
}

function keyIn(history: Map<number, KeyHistory>, point: UsagePoint): KeyHistory {
  const existing = history.get(point.key_id);
  if (existing !== undefined) return existing;
  const key = { id: point.key_id, name: point.key_name, starts: [], requests: [], input: [], output: [] };
  history.set(point.key_id, key);
  return key;
}

/** The indexes of the buckets that start inside the span: from (inclusive) to (exclusive). */
function indexesIn(starts: readonly number[], span: TimeSpan): [from: number, to: number] {
  return [firstAtOrAfter(starts, span.from), firstAtOrAfter(starts, span.to)];
}

function firstAtOrAfter(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

const valueAt = (key: KeyHistory, metric: UsageMetric, index: number): number =>
  metric === "total" ? (key.input[index] ?? 0) + (key.output[index] ?? 0) : (key[metric][index] ?? 0);

/** A key's values in steps of `stepMs` from the span's start. */
export function usageSteps(key: KeyHistory, metric: UsageMetric, span: TimeSpan, stepMs: number): Float64Array {
  const values = new Float64Array(Math.ceil((span.to - span.from) / stepMs));
  const [from, to] = indexesIn(key.starts, span);
  for (let index = from; index < to; index++) {
    const step = Math.floor(((key.starts[index] ?? 0) - span.from) / stepMs);
    values[step] = (values[step] ?? 0) + valueAt(key, metric, index);
  }
  return values;
}

export function sumsIn(key: KeyHistory, span: TimeSpan): UsageSums {
  const sums: UsageSums = { requests: 0, input: 0, output: 0 };
  const [from, to] = indexesIn(key.starts, span);
  for (let index = from; index < to; index++) {
    sums.requests += key.requests[index] ?? 0;
    sums.input += key.input[index] ?? 0;
    sums.output += key.output[index] ?? 0;
  }
  return sums;
}

export const metricOf = (sums: UsageSums, metric: UsageMetric): number =>
  metric === "total" ? sums.input + sums.output : sums[metric];

export function addSums(all: Iterable<UsageSums>): UsageSums {
  const sums: UsageSums = { requests: 0, input: 0, output: 0 };
  for (const one of all) {
    sums.requests += one.requests;
    sums.input += one.input;
    sums.output += one.output;
  }
  return sums;
}

/** The API's rows for these keys and this span, in the API's order. */
export function usageHistoryCsv(keys: readonly KeyHistory[], span: TimeSpan): string {
  const header = ["bucket_start", "key_id", "key_name", "request_count", "input_tokens", "output_tokens"];
  const rows = keys
    .flatMap((key) => {
      const [from, to] = indexesIn(key.starts, span);
      return key.starts.slice(from, to).map((start, offset) => ({ key, index: from + offset, start }));
    })
    .toSorted((a, b) => a.start - b.start || a.key.id - b.key.id)
    .map(({ key, index, start }) => [
      seoulTimestamp(start),
      key.id,
      key.name,
      key.requests[index] ?? 0,
      key.input[index] ?? 0,
      key.output[index] ?? 0,
    ]);
  return csv(header, rows);
}
