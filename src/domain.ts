// The nouns that proxy, store, simulator and telemetry share. Imports nothing.

export type KeyId = number;

/** What a key is for: everything, requests under `/v1`, or posting GPU samples. */
export type KeyScope = "all" | "inference" | "gpu";

/** How much a key may use; null: no limit. Members are named as in the API. */
export interface KeyLimits {
  max_concurrency: number | null;
  requests_per_minute: number | null;
  tokens_per_minute: number | null;
  tokens_per_day: number | null;
  tokens_per_month: number | null;
}

export type LimitName = keyof KeyLimits;

/** What an API key may do. A key that may do everything has none. */
export interface KeyRules extends KeyLimits {
  scope: KeyScope;
  /** In lower case; one that ends in `*` is a prefix. Null: every model. */
  allowed_models: readonly string[] | null;
}

/** Tokens of one response, as the backend reports them. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** Of the input, what the backend took from its cache; on `/v1/messages` it is not part of `inputTokens`. Unset: none. */
  cachedInputTokens?: number | undefined;
  /** Of the output, what was spent on thinking. Unset: none, or not reported. */
  reasoningTokens?: number | undefined;
}

export const noUsage: Usage = { inputTokens: 0, outputTokens: 0 };

/** The place and the reserved tokens of one request in flight. Unique by all three members. */
export interface AdmissionId {
  keyId: KeyId;
  /** The process that serves it. */
  instance: string;
  number: number;
}

/**
 * What ends with the count of a response: what its request holds in the database. The requests of a busy key hold it
 * together, and give it back later; their tokens count against the limits with the response all the same.
 */
export type SettledAdmission = AdmissionId | Pick<AdmissionId, "keyId">;

/** Whether a request of a key with limits may run. */
export interface Admission {
  /** Undefined if it may. */
  refusedBy: LimitName | undefined;
  /** Until a refused one may be admitted, in milliseconds. */
  waitMs: number;
  /** What counts against a limit, this request included if it is admitted; undefined while the database fails. */
  used(name: LimitName): number | undefined;
  /** From now on the count of the response gives back what the request holds. @returns what that is */
  handOver(): SettledAdmission | undefined;
  /** Gives back what the request holds, unless that was handed over to a count. */
  end(): void;
}

/** One counted response. */
export interface UsageEvent extends Usage {
  keyId: KeyId;
  /** Epoch milliseconds at which the response closed. Decides the Seoul day and minute that it counts for. */
  closedAt: number;
  /** 0 for usage that came after its response was counted; 1 if unset. */
  requestCount?: 0 | 1;
  /**
   * Set for a response that the backend stores and may report again: its tokens count up to the highest numbers reported
   * for this id. Usage that comes later is then given in full, not as a difference.
   */
  responseId?: string | undefined;
  /** The name sent to the backend; unset if the request named none. */
  model?: string | undefined;
  /** Of the cached input, what is not part of the input: all of it on `/v1/messages`. */
  cachedBesideInputTokens?: number | undefined;
  /** For the request log; unset for usage that came after its response was counted. */
  request?: RequestRecord | undefined;
  /** The request that this usage belongs to, if its response was counted before. */
  amends?: string | undefined;
  /** To be given back with the count; undefined for a key without limits. */
  admission?: SettledAdmission | undefined;
}

/** How a request ended; log and metrics use the same words. */
export type Outcome =
  | "completed"
  | "client_left"
  | "shutdown"
  | "revoked"
  | "upstream_failed"
  | "timed_out"
  | "refused"
  | "ended_by_admin";

/** What Tollgate changed in a request's body. */
export type RequestChange =
  | "model"
  | "max_tokens"
  | "system_prompt_effort"
  | "system_prompt_language"
  | "thinking"
  | "stream_usage";

export interface RequestChanges {
  kinds: readonly RequestChange[];
  /** The first token limit that was lowered. */
  maxTokens: { from: number; to: number } | undefined;
}

/** One finished request as log and metrics see it. The path has no query, and the key appears only by its id. */
export interface RequestRecord {
  /** The `X-Request-Id` that client, backend and log share. */
  requestId: string;
  /** The client as the outermost trusted reverse proxy saw it. */
  clientAddress: string;
  /** The client program: the first word of its `User-Agent`. */
  clientProgram?: string | undefined;
  method: string;
  path: string;
  /** The client's status; 499 if it left before the response head. */
  status: number;
  outcome: Outcome;
  keyId: KeyId | undefined;
  /** The model names asked for by the client and sent to the backend; undefined if the body names none or was not read. */
  modelAsked: string | undefined;
  modelSent: string | undefined;
  /** Why the request failed: a code of `proxy/errors.ts`. */
  code: string | undefined;
  /** Why the call to the upstream failed: a code of the system or of TLS, or a word such as `connect_timeout`. */
  cause: string | undefined;
  /** Bytes of the response body that came from the upstream; undefined if no head came. */
  receivedBytes: number | undefined;
  streamed: boolean;
  /** Host and port of the upstream; unset if the request was not sent. */
  backend?: string | undefined;
  changes?: RequestChanges | undefined;
  /** From the request's arrival to sending it to the upstream; unset if it was not sent. */
  queueMs?: number | undefined;
  /** From sending the request to the upstream's response head; undefined if none came. */
  upstreamMs: number | undefined;
  /** From the request's arrival to the first byte of the response body (TTFT for streams). */
  firstByteMs: number | undefined;
  durationMs: number;
  usage: Usage | undefined;
  /** The ledger has it, together with its counts. */
  isInLedger?: boolean;
}

/** A request that has not ended, as it is now. */
export interface RunningRequest extends Pick<
  RequestRecord,
  "requestId" | "clientAddress" | "method" | "path" | "keyId"
> {
  /** As sent to the backend. */
  model: string | undefined;
  backend: string | undefined;
  /** Its body is being read, it waits in the queue or for the backend, or the response flows. */
  state: "receiving" | "waiting" | "running";
  ageMs: number;
  /** Of the response body, from the backend. */
  receivedBytes: number;
  /** Seen so far. */
  usage: Usage | undefined;
}

/** A handle to a request that has not ended. */
export interface RunningHandle {
  describe(): RunningRequest;
  /** Ends it as a broken response. */
  end(): void;
}

export interface RequestObserver {
  finished(record: RequestRecord): void;
}

/** One GPU at one moment. Null: the tool did not report the value. */
export interface GpuReading {
  /** 0 to 255, unique over all hosts. */
  gpuId: number;
  name: string;
  /** Watts. */
  powerDrawW: number | null;
  /** Degrees Celsius. */
  tempC: number | null;
  memoryUsedMb: number | null;
  memoryTotalMb: number | null;
  utilizationPct: number | null;
}
