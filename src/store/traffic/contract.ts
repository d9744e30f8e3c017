// The store's contract for what is known about traffic in addition to the counts: latencies, outcomes, backends. Times
// are minutes or hours since the epoch unless they say otherwise.
//
// It keeps true: these are statistics and not counts, so the last seconds may be lost. Minutes and hours are added to
// in one transaction, by one process at a time. Latencies are histograms as text. Clients choose the names of models,
// so an hour has a limited number of them. Removed: a table of responses without tokens, which the request log finds.

import type { BackendCounts } from "../../domain/backends.ts";
import type { LatencyHistogram } from "../../domain/histogram.ts";
import type { KeyId } from "../../domain/keys.ts";
import type { OutcomeSum } from "../../domain/requests.ts";

/** Histograms as text; see `domain/histogram.ts`. */
export type StoredLatency = { minute: number; model: string; requestCount: number } & Record<LatencyHistogram, string>;

/** What one backend was sent, and how it responded. */
export type StoredBackend = BackendCounts & {
  minute: number;
  backend: string;
  /** A histogram of the milliseconds until the first byte of streams, as text. */
  firstByte: string;
};

export interface StoredTraffic {
  latencies: readonly StoredLatency[];
  outcomes: readonly OutcomeSum[];
  backends: readonly StoredBackend[];
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
  failures: OutcomeSum[];
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
  /** In the order of time; `minute` is the start of the bucket. Reads the whole range at once. */
  latencies(range: TrafficRange, filter?: LatencyFilter): Promise<StoredLatency[]>;
  /** Reads the whole range at once, and lists at most `limit` failures. */
  outcomes(range: TrafficRange, limit: number, keyId?: KeyId): Promise<OutcomeSums>;
  /** Sums of the minutes from one (inclusive) to another (exclusive), by bucket and name; by default all is one bucket. */
  backends(from: number, to: number, bucketMinutes?: number): Promise<StoredBackend[]>;
}
