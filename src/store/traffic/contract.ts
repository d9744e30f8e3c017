import type { BackendCounts } from "../../domain/backends.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { CountedField } from "../../domain/usage.ts";

// The store's contract for what is known about traffic in addition to the counts: models, latencies, failures. Times are minutes or
// hours since the epoch unless they say otherwise.

/** Histograms as text; see `domain/histogram.ts`. */
export interface StoredLatency {
  minute: number;
  model: string;
  requestCount: number;
  firstByte: string;
  duration: string;
  tokensPerSecond: string;
  /** Until a request was sent, in milliseconds; of those that had to wait. */
  queueWait: string;
}

export interface StoredOutcome {
  minute: number;
  /** 0: none. */
  keyId: KeyId;
  outcome: string;
  code: string;
  count: number;
  /** Epoch milliseconds. */
  lastAt: number;
}

export interface StoredTokenless {
  hour: number;
  keyId: KeyId;
  model: string;
  path: string;
  requestCount: number;
  streamedCount: number;
}

/** Responses without tokens, by key, model and path; `hour` is the first of each. */
export interface TokenlessSums {
  /** Sums over all of them, whether or not they are listed. */
  requestCount: number;
  streamedCount: number;
  /** Most requests first. */
  most: StoredTokenless[];
}

/** What one backend was sent, and how it responded. */
export interface BackendFigures extends BackendCounts {
  backend: string;
  /** A histogram of the milliseconds until the first byte of streams, as text. */
  firstByte: string;
}

export interface StoredBackend extends BackendFigures {
  minute: number;
}

export interface StoredTraffic {
  latencies: readonly StoredLatency[];
  outcomes: readonly StoredOutcome[];
  tokenless: readonly StoredTokenless[];
  backends: readonly StoredBackend[];
}

export interface ModelUsageQuery {
  /** Rows of hours, or of days or months in Seoul, in hours or days; `to` is exclusive. Months lie within the range. */
  unit: "hour" | "day" | "month";
  from: number;
  to: number;
  /** What the sums are grouped by. */
  groupBy: { period: boolean; key: boolean; model: boolean };
  keyId?: KeyId | undefined;
  model?: string | undefined;
  /** If there are more groups, those of the latest periods are returned; by default, those with the most tokens. */
  latestFirst?: boolean;
  limit: number;
}

export interface ModelUsage extends Record<CountedField, number> {
  /** 0 unless grouped by it; so are the others. */
  period: number;
  keyId: KeyId;
  model: string;
  requestCount: number;
}

export interface TrafficRange {
  /** Minutes since the epoch; `to` is exclusive. */
  from: number;
  to: number;
  /** Whether the sums of whole hours are enough. */
  byHour: boolean;
  /** Rows are added up by bucket; aligned to midnight in Seoul, and whole hours if the range is by hour. */
  bucketMinutes: number;
}

export interface LatencyFilter {
  /** Whether models are added together, as a model without a name. */
  allModels?: boolean;
  model?: string | undefined;
}

/** How requests ended. */
export interface OutcomeSums {
  /** By bucket and outcome, in the order of time. */
  points: OutcomePoint[];
  /** Failures of the whole range by key, outcome and code, most first; `minute` is 0. */
  failures: StoredOutcome[];
}

export interface OutcomePoint {
  /** The start of the bucket. */
  minute: number;
  outcome: string;
  count: number;
  failedCount: number;
}

export interface TrafficStore {
  /** Adds to the sums, and deletes a bounded number of old ones. */
  add(traffic: StoredTraffic): Promise<void>;
  modelUsage(query: ModelUsageQuery): Promise<ModelUsage[]>;
  /** In the order of time; `minute` is the start of the bucket. Reads the whole range at once. */
  latencies(range: TrafficRange, filter?: LatencyFilter): Promise<StoredLatency[]>;
  /** Reads the whole range at once, and lists at most `limit` failures. */
  outcomes(range: TrafficRange, limit: number, keyId?: KeyId): Promise<OutcomeSums>;
  /** Since an hour; lists at most `limit` sums. */
  tokenless(sinceHour: number, limit: number): Promise<TokenlessSums>;
  /** Sums of the minutes from one (inclusive) to another (exclusive), by name. */
  backends(from: number, to: number): Promise<BackendFigures[]>;
}
