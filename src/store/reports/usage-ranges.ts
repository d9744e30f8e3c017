import type { KeyId } from "../../domain/keys.ts";

export interface BucketRange {
  /** Epoch milliseconds. Minutes that end before it are left out, so the first bucket may be partial. */
  since: number;
  /** The end of a bucket, epoch milliseconds; undefined: now. */
  until?: number | undefined;
  /** Buckets are aligned to midnight in Seoul. */
  bucketMinutes: number;
}

/** Which keys a report covers. */
export interface KeyFilter {
  /** Undefined: all keys. */
  keyId?: KeyId | undefined;
  /** Part of a name, in any case. */
  search?: string | undefined;
  /** Not summed. */
  hiddenIds: readonly KeyId[];
}

export type UsageMetric = "requests" | "input" | "output" | "total";

/** Minutes are counted since the epoch. */
export interface ChartRange extends KeyFilter {
  /** The start of a bucket. */
  from: number;
  /** The end of a bucket. */
  to: number;
  bucketMinutes: number;
  /** Orders the keys and is the value of each bucket. */
  metric: UsageMetric;
  /** How many keys have a series of their own. */
  top: number;
  /** How many keys are listed with their sums. */
  listed: number;
  /** What the caller has already: the series of these keys up to the bucket that starts at `minute`. */
  known?: { keyIds: readonly KeyId[]; minute: number } | undefined;
}

export interface DayRange extends KeyFilter {
  /** Seoul days, `YYYY-MM-DD`. */
  firstDay: string;
  /** Leaves out this day and the days after it. */
  beforeDay?: string | undefined;
}
