/** One run of the load generator. */
export interface LoadSpec {
  port: number;
  path: string;
  /** Lines such as `x-simulate: rate=20`. */
  headers: readonly string[];
  /** Used in turn. */
  keys: readonly string[];
  /** Several are sent in turn. Each time all were sent, the number that stands for `conversationMark` in them grows. */
  body: string | readonly string[];
  connections: number;
  /** Total number of requests. */
  requests: number;
  /** Evenly spaced rate; 0: each connection sends its next request as soon as it has its response. */
  perSecond: number;
  /** For event streams: a longer gap inside one is a stall. 0: the responses are not streams. */
  stallMs: number;
  /** Time limit of the run. */
  limitMs: number;
}

export interface Quantiles {
  p50: number;
  p99: number;
  max: number;
}

/** Times are microseconds, except `seconds`. */
export interface LoadResult {
  seconds: number;
  /** Number of responses by status; 0: the connection broke. */
  statuses: Readonly<Record<string, number>>;
  /** Of the 2xx responses, as the client read it. */
  usage: { requests: number; inputTokens: number; outputTokens: number };
  /** From the time a request was due or sent to the end of its response. */
  latency: Quantiles;
  /** To the first byte of the response. */
  firstByte: Quantiles;
  /** Number of events in all streams. */
  frames: number;
  /** Between two parts of a stream. */
  gap: Quantiles;
  stalls: number;
}
