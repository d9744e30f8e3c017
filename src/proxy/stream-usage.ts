/** What the proxy added to a request's `stream_options`, and what the client must therefore not see in the answer. */
export interface UsageAdded {
  includeUsage: boolean;
  continuousUsage: boolean;
}

/** Takes out of an event stream what was only sent because the proxy asked. */
export interface StreamUsageFilter {
  /** @returns what the client gets of the bytes up to here; empty where they are still held */
  push(chunk: Uint8Array): Uint8Array;
  /** @returns what was still held */
  end(): Uint8Array;
}
