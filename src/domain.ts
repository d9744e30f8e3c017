import type { Usage } from "./proxy/usage/usage.ts";

/** How a request ended, the word for it in log and metrics alike. */
export type Outcome = "completed" | "client_left" | "upstream_failed" | "timed_out" | "refused";

/** One finished request as log and metrics see it. The path is without its query; the key appears by id only. */
export interface RequestRecord {
  method: string;
  path: string;
  /** What the client got; 499 where it left before the head. */
  status: number;
  outcome: Outcome;
  keyId: number | undefined;
  /** Why it failed, a code of `errors.ts`. */
  code: string | undefined;
  streamed: boolean;
  /** From sending the request to the upstream's response head; undefined where none came. */
  upstreamMs: number | undefined;
  /** To the first byte of the response body (TTFT for streams). */
  firstByteMs: number | undefined;
  durationMs: number;
  usage: Usage | undefined;
}

export interface RequestObserver {
  started(): void;
  finished(record: RequestRecord): void;
}
