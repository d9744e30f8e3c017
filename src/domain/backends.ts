import type { LastTurn, Trace } from "./cache-loss.ts";
import { cachedTokensOf, type CountedUsage, mapCounters, wholeInput } from "./usage.ts";

/** Why a request went to its backend: Explain, the request log and `x-tollgate-reason` use the same words. */
export const choiceReasons = ["only", "session", "prefix", "load", "spill", "failover"] as const;

export type ChoiceReason = (typeof choiceReasons)[number];

export interface Choice {
  /** Its name. */
  backend: string;
  reason: ChoiceReason;
  /** Unset where there was no choice, or nothing is known of the request. */
  expectation?: Expectation | undefined;
  /** Unset for a conversation that is not known. */
  lastTurn?: LastTurn | undefined;
}

/** What a choice went by, in tokens, as far as the characters of the body tell before it is sent. */
export interface Expectation {
  /** How long the whole body is. */
  tokens: number;
  /** What the backend was expected to read of it; the rest is in its cache. */
  toRead: number;
  /** That is known from a conversation of the key, and not from what others have sent. */
  isOwn: boolean;
  /** What the best of the other backends had to do for it, less what waited at the chosen one; undefined: no other took it. */
  elsewhere: number | undefined;
}

/** The share of the input that was expected to come from the backend's cache. */
export const expectedShare = ({ tokens, toRead }: Expectation): number =>
  tokens === 0 ? 0 : Math.min(1, Math.max(0, 1 - toRead / tokens));

/** How many tokens of the input were expected to come from the cache; undefined: not known. */
export const expectedCachedTokens = (expectation: Expectation, usage: CountedUsage | undefined): number | undefined =>
  usage && Math.round(wholeInput(usage) * expectedShare(expectation));

/**
 * What the choice cost, in tokens: what was read at the chosen backend beyond what the best of the others would have had to
 * do, now that is known what the chosen one had cached. Of the others, that stays an estimate. Means something only for a
 * backend that reports what it had cached: nothing cached and nothing reported look the same.
 */
export function regretTokens({ tokens, elsewhere }: Expectation, usage: CountedUsage | undefined): number {
  if (elsewhere === undefined || usage === undefined) return 0;
  const whole = wholeInput(usage);
  if (whole === 0 || tokens === 0) return 0;
  const wasRead = Math.max(0, whole - cachedTokensOf(usage));
  const best = Math.max(0, elsewhere) * (whole / tokens);
  return Math.round(Math.max(0, wasRead - best));
}

/** What a request has in common with others that a backend may have cached. Numbers stand for texts. */
export interface Conversation {
  /** The conversation that it is a turn of; undefined if it is of none. */
  name: number | undefined;
  /** In a session that the client names, the one agent: each has a conversation of its own. Unset without a session. */
  agent?: number | undefined;
  /** Its instructions and tools, which other conversations have too. */
  prefix: number | undefined;
  /** Unset if nothing can be told of what a turn keeps of the one before. */
  trace?: Trace | undefined;
}

export const noConversation: Conversation = { name: undefined, prefix: undefined };

/** What a request learns of the backend that it was sent to. */
export type BackendSign =
  /** A head came that speaks for the backend. */
  | { kind: "responded" }
  /** That response ended, and its body told of no failure. */
  | { kind: "ended" }
  /** The first byte of its body came, of a stream its first content: the backend has read the prompt. */
  | { kind: "begun" }
  /** No connection was made: nothing was sent. */
  | { kind: "unreachable" }
  /** 500, 502, 503 or 504, of the backend or because of it, or 404 for a model that it has. */
  | { kind: "failed"; status: number; retryAfterMs: number | undefined }
  /** 429. */
  | { kind: "busy"; retryAfterMs: number | undefined };

/** Of the input: what was expected of the cache, and what the choice of the backend cost (see `regretTokens`). */
export const cacheCountNames = ["inputTokens", "cachedTokens", "expectedTokens", "regretTokens"] as const;

/** What is added up of each backend. */
export const backendCountNames = [
  "requestCount",
  // Those that failed because of the backend.
  "errorCount",
  ...cacheCountNames,
  "outputTokens",
  // The output of streams, and the time in which it flowed.
  "streamedTokens",
  "streamedUs",
] as const;

export type BackendCounts = Record<(typeof backendCountNames)[number], number>;

export const noBackendCounts: Readonly<BackendCounts> = mapCounters(backendCountNames, () => 0);

export const backendStates = ["in", "out", "draining"] as const;

export type BackendState = (typeof backendStates)[number];

/** A backend as this machine sees it. */
export interface BackendStatus {
  name: string;
  state: BackendState;
  /** Since when, in epoch milliseconds. */
  since: number;
  inFlight: number;
  /** Since when all of its places are taken, epoch milliseconds; unset while one is free. */
  fullSince?: number;
  /** Requests that wait for a place and may use this backend. */
  waiting: number;
  /** Of these, those that it has a place for once it has read others; unset: it reads any number. */
  waitingForPrefill?: number;
}

/** What is known of the backends, by those who choose among them. */
export interface BackendStates {
  /** All of the catalog. */
  list(): Promise<readonly BackendStatus[]>;
  /** A backend that drains gets no new requests. */
  setDraining(name: string, isDraining: boolean): void;
  /** Its counters began anew, as each process sees within a minute: what it had cached is gone. */
  hasRestarted(name: string): void;
}

/** The program that a backend is, as far as rules tell programs apart. */
export const engines = ["vllm", "sglang", "llama.cpp", "ollama"] as const;

export type Engine = (typeof engines)[number];

export interface Engines {
  /** Those of the backends with these names, as far as they are known. */
  enginesOf: (backends: readonly string[]) => readonly Engine[];
  /** Resolves once each backend that is in was asked. It is asked again after a while, which is not waited for. */
  learn: () => Promise<void>;
}
