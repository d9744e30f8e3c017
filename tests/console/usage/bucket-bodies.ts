import { minuteMs, seoulTimestamp } from "../../../console/src/lib/seoul-time.ts";
import { type BucketsRequest, type UsageBucketsBody } from "../../../console/src/usage/usage-buckets.ts";

export const start = Date.parse("2026-11-21T10:00:00+09:00");
export const at = (minute: number): number => start + minute * minuteMs;

export const bucketsRequest: BucketsRequest = {
  filter: {},
  by: "key",
  timeRange: { preset: "1h", zoom: undefined },
  bucketMinutes: 1,
  metric: "output",
  top: 8,
  list: 100,
};

const fields = (output: number) => ({
  request_count: output > 0 ? 1 : 0,
  input_tokens: 2 * output,
  output_tokens: output,
});

interface BodyOptions {
  /** Minutes, like `to` and `first`. */
  from?: number;
  to?: number;
  first?: number;
  otherKeys?: number;
  other?: readonly number[];
}

/** The response for some keys with their output tokens by minute, highest first, and the sum of others. */
export function bucketsBody(
  series: readonly (readonly [id: number, values: readonly number[]])[],
  { from = 0, to = 5, first, otherKeys = 0, other = [] }: BodyOptions = {},
): UsageBucketsBody {
  const sums = series.map(([, values]) => values.reduce((sum, value) => sum + value, 0));
  const otherSum = other.reduce((sum, value) => sum + value, 0);
  return {
    from: seoulTimestamp(at(from)),
    to: seoulTimestamp(at(to)),
    bucket_minutes: 1,
    first_bucket: seoulTimestamp(at(first ?? from)),
    key_count: series.length + otherKeys,
    ...fields(sums.reduce((sum, value) => sum + value, otherSum)),
    keys: {
      id: series.map(([id]) => id),
      name: series.map(([id]) => `key ${id}`),
      request_count: sums.map(() => 1),
      input_tokens: sums.map((sum) => 2 * sum),
      output_tokens: sums,
    },
    series: series.map(([key_id, values]) => ({ key_id, values: [...values] })),
    other: { key_count: otherKeys, ...fields(otherSum), values: [...other] },
  };
}
