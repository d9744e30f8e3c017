import { csv } from "../lib/csv.ts";

export const usageMetrics = {
  output: { label: "Output tokens", short: "Output" },
  input: { label: "Input tokens", short: "Input" },
  total: { label: "Total tokens", short: "Total" },
  requests: { label: "Requests", short: "Requests" },
} as const;

export type UsageMetric = keyof typeof usageMetrics;

export const isUsageMetric = (text: unknown): text is UsageMetric =>
  typeof text === "string" && Object.hasOwn(usageMetrics, text);

export interface UsageSums {
  requests: number;
  input: number;
  output: number;
}

/** The fields of the API. */
export interface UsageFields {
  request_count: number;
  input_tokens: number;
  output_tokens: number;
}

export const sumsOf = (fields: UsageFields): UsageSums => ({
  requests: fields.request_count,
  input: fields.input_tokens,
  output: fields.output_tokens,
});

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

/** A point of `GET /api/usage/points`. */
export interface UsagePoint extends UsageFields {
  bucket_start: string;
  key_id: number;
  key_name: string;
}

/** The API's rows, in its order: by time, then by key. */
export const usagePointsCsv = (points: readonly UsagePoint[]): string =>
  csv(
    ["bucket_start", "key_id", "key_name", "request_count", "input_tokens", "output_tokens"],
    points.map((point) => [
      point.bucket_start,
      point.key_id,
      point.key_name,
      point.request_count,
      point.input_tokens,
      point.output_tokens,
    ]),
  );
