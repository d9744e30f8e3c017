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
