/** Why a request went to its backend: Explain, the request log and `x-tollgate-reason` use the same words. */
export const choiceReasons = ["only", "session", "prefix", "load", "spill", "failover"] as const;

export type ChoiceReason = (typeof choiceReasons)[number];

export interface Choice {
  /** Its name. */
  backend: string;
  reason: ChoiceReason;
}

/** What a request has in common with others that a backend may have cached. Numbers stand for texts. */
export interface Conversation {
  /** The conversation that it is a turn of; undefined if it is of none. */
  name: number | undefined;
  /** Its instructions and tools, which other conversations have too. */
  prefix: number | undefined;
}

export const noConversation: Conversation = { name: undefined, prefix: undefined };

/** What a request learns of the backend that it was sent to. */
export type BackendSign =
  /** A head came that speaks for the backend. */
  | { kind: "responded" }
  /** The first byte of its body came: the backend has read the prompt. */
  | { kind: "begun" }
  /** No connection was made: nothing was sent. */
  | { kind: "unreachable" }
  /** 502, 503 or 504. */
  | { kind: "failed"; status: number; retryAfterMs: number | undefined }
  /** 429. */
  | { kind: "busy"; retryAfterMs: number | undefined };

/** What is added up of each backend. */
export interface BackendCounts {
  requestCount: number;
  /** Those that failed because of the backend. */
  errorCount: number;
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
  /** Of streams: their output, and the time in which it flowed. */
  streamedTokens: number;
  streamedUs: number;
}

export const noBackendCounts: Readonly<BackendCounts> = {
  requestCount: 0,
  errorCount: 0,
  inputTokens: 0,
  cachedTokens: 0,
  outputTokens: 0,
  streamedTokens: 0,
  streamedUs: 0,
};

export const backendCountNames = Object.keys(noBackendCounts) as readonly (keyof BackendCounts)[];

export const backendStates = ["in", "out", "draining"] as const;

export type BackendState = (typeof backendStates)[number];

/** A backend as this machine sees it. */
export interface BackendStatus {
  name: string;
  state: BackendState;
  /** Since when, in epoch milliseconds. */
  since: number;
  inFlight: number;
  /** Requests that wait for a place and may use this backend. */
  waiting: number;
}

/** What is known of the backends, by those who choose among them. */
export interface BackendStates {
  /** All of the catalog. */
  list(): Promise<readonly BackendStatus[]>;
  /** A backend that drains gets no new requests. */
  setDraining(name: string, isDraining: boolean): void;
}

/** The program that a backend is, as far as rules tell programs apart. */
export const engines = ["vllm", "sglang", "llama.cpp", "ollama"] as const;

export type Engine = (typeof engines)[number];

export interface Engines {
  /** Those of the backends with these names, as far as they are known. */
  enginesOf: (backends: readonly string[]) => readonly Engine[];
  /** Resolves once each backend was asked. It is asked again after a while, for which nobody waits. */
  learn: () => Promise<void>;
}
