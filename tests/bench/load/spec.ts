/** What one run of the load generator does, and what came of it. Times are microseconds. */
export interface LoadSpec {
  port: number;
  path: string;
  /** Lines such as `x-portkey-provider: openai`. */
  headers: readonly string[];
  /** Taken in turn. */
  keys: readonly string[];
  body: string;
  connections: number;
  /** How many requests are made in all. */
  requests: number;
  /** Evenly spread in time; 0: each connection asks again as soon as it is answered. */
  perSecond: number;
  /** The answers are event streams; silence inside one that lasts longer is a stall. 0: they are not. */
  stallMs: number;
  /** The longest that the run may take. */
  limitMs: number;
}

export interface Quantiles {
  p50: number;
  p99: number;
  max: number;
}

export interface LoadResult {
  seconds: number;
  /** Answers by their status; 0: the connection broke. */
  statuses: Readonly<Record<string, number>>;
  /** Of the 2xx answers, as the client read it out of them. */
  usage: { requests: number; inputTokens: number; outputTokens: number };
  /** From when a request was due, or sent, to the end of its answer. */
  latency: Quantiles;
  /** To the first byte of the answer. */
  firstByte: Quantiles;
  /** Events of streams. */
  frames: number;
  /** Between two pieces of a stream. */
  gap: Quantiles;
  stalls: number;
}
