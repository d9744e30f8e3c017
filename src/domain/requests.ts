import type { ChoiceReason, Expectation } from "./backends.ts";
import type { CacheLoss } from "./cache-loss.ts";
import type { KeyId, TeamId, UserId } from "./keys.ts";
import type { Priority } from "./limits.ts";
import { clientRules } from "./models.ts";
import type { CountedUsage, Usage } from "./usage.ts";

/** How a request ended; API, log and metrics use the same words. `limited`: refused by a limit of its key. */
export const outcomes = [
  "completed",
  "client_left",
  "shutdown",
  "upstream_failed",
  "timed_out",
  "refused",
  "limited",
  "revoked",
  "ended_by_admin",
] as const;

export type Outcome = (typeof outcomes)[number];

/** The limits of its key, team or user, or a place at a backend. */
export const waits = ["limits", "backend", "prefill"] as const;
export type WaitedFor = (typeof waits)[number];

/** How often requests of a key ended so in a minute since the epoch. */
export interface OutcomeSum {
  minute: number;
  /** 0: none. */
  keyId: KeyId;
  outcome: string;
  /** An error code, a cause, or `status_429`; empty for a success. */
  code: string;
  count: number;
  /** Epoch milliseconds. */
  lastAt: number;
}

/** They got an error of ours and no attempt of the backend. Refusals are fast: many would hide how long others take. */
export const refusals: ReadonlySet<Outcome> = new Set<Outcome>(["refused", "limited"]);

/** Neither a success nor a failure: whoever left may have had enough. */
export const noFailure = "client_left" satisfies Outcome;

/** Programs of which tables know more than others, by the name with which their User-Agents begin. */
const programs = ["claude-cli", "codex", "opencode"] as const;

export type Program = (typeof programs)[number];

/** In any case, and with more in the name: `codex_exec/0.169.0`, `Codex Desktop/0.171.0 (…)`. */
const anyProgram = new RegExp(`^(${programs.join("|")})(?:[ _-][^/]{1,40})?/`, "i");

export const programOf = (userAgent: string | undefined): Program | undefined =>
  userAgent === undefined ? undefined : (anyProgram.exec(userAgent)?.[1]?.toLowerCase() as Program | undefined);

/** What Tollgate changed in a request's body. */
export const requestChanges = [
  "model",
  "max_tokens",
  "system_prompt_effort",
  "system_prompt_language",
  "thinking",
  "stream_usage",
  ...clientRules,
] as const;
export type RequestChange = (typeof requestChanges)[number];

export interface RequestChanges {
  kinds: readonly RequestChange[];
  /** The first token limit that was lowered. */
  maxTokens: { from: number; to: number } | undefined;
}

/** One finished request as log and metrics see it. The path has no query, and the key appears only by its id. */
export interface RequestRecord {
  /** The `X-Request-Id` that client, backend and log share. */
  requestId: string;
  /** Of the trace that the client says it is part of (W3C Trace Context). */
  traceId?: string | undefined;
  /** The client as the outermost trusted reverse proxy saw it. */
  clientAddress: string;
  /** The client program and its version: the first word of its `User-Agent`. */
  clientProgram?: string | undefined;
  /** What it is for, as far as its client says or shows that, such as `subagent`. */
  requestClass?: string | undefined;
  method: string;
  path: string;
  /** The client's status; 499 if it left before the response head. */
  status: number;
  outcome: Outcome;
  keyId: KeyId | undefined;
  /** The key's team when it began. */
  teamId?: TeamId | undefined;
  /** Undefined: nobody's in particular. */
  userId?: UserId | undefined;
  /** Whom it comes before where requests wait; undefined: `normal`. */
  priority?: Priority | undefined;
  /** The model names asked for by the client and sent to the backend; undefined if the body names none or was not read. */
  modelAsked: string | undefined;
  modelSent: string | undefined;
  /** Its name everywhere but at the backend. */
  model: string | undefined;
  /** Why the request failed: a code of `proxy/errors.ts`. */
  code: string | undefined;
  /** Why the call to the upstream failed: a code of the system or of TLS, or a word such as `connect_timeout`. */
  cause: string | undefined;
  /** The backend's own sentence, in a response that says that it failed, or ours that names a limit; never a prompt. */
  message?: string | undefined;
  /** Bytes of the response body that came from the upstream; undefined if no head came. */
  receivedBytes: number | undefined;
  streamed: boolean;
  /** Its name, or without a file of models its host and port; unset if the request was not sent. */
  backend?: string | undefined;
  /** Why it was sent there; unset if there was no choice. */
  reason?: ChoiceReason | undefined;
  expectation?: Expectation | undefined;
  /** A number that its turns have in common; unset if there was no choice, or it is of none. */
  conversation?: number | undefined;
  /** Why its input did not come from the cache; unset if it did, or that is not known. */
  cacheLoss?: CacheLoss | undefined;
  changes?: RequestChanges | undefined;
  /** From the request's arrival to sending it to the upstream; unset if it was not sent. */
  queueMs?: number | undefined;
  /** For what it waited first before it was sent; unset: it did not wait. */
  waitedFor?: WaitedFor | undefined;
  /** From sending the request to the upstream's response head; undefined if none came. */
  upstreamMs: number | undefined;
  /** From the request's arrival to the first byte of the response body (TTFT for streams). */
  firstByteMs: number | undefined;
  durationMs: number;
  usage: CountedUsage | undefined;
  /** Charged to the key's limits of tokens, because the backend did not report it. */
  estimatedTokens?: number | undefined;
  /** It ended before the backend reported its output, and no limit is charged for it: that output is not counted. */
  isUncounted?: boolean;
  /** How often it was handed to a connection; unset: once, or not at all. */
  sends?: number | undefined;
  /** The duration in the row that the ledger wrote together with its counts; unset if there is none. */
  writtenMs?: number | undefined;
}

/** The paths whose responses report tokens. */
export const usagePaths: ReadonlySet<string> = new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/messages",
  "/v1/responses",
  "/v1/embeddings",
]);

/** Whether it should have reported tokens and did not: a whole 2xx response to a POST on a path that reports them. */
export const lacksUsage = ({ method, path, status, outcome, usage }: RequestRecord): boolean =>
  usage?.inputTokens === 0 &&
  usage.outputTokens === 0 &&
  outcome === "completed" &&
  status >= 200 &&
  status <= 299 &&
  method === "POST" &&
  usagePaths.has(path);

/** A request that has not ended, as it is now. */
export interface RunningRequest extends Pick<
  RequestRecord,
  "requestId" | "clientAddress" | "method" | "path" | "keyId" | "teamId" | "userId" | "priority"
> {
  /** The name that the backend is sent. */
  model: string | undefined;
  backend: string | undefined;
  /** Its body is read, it waits in the queue, until another long prompt is read, for the backend, or the response flows. */
  state: "receiving" | "queued" | "prefill" | "waiting" | "running";
  /** What there is to read of its prompt, in the state `prefill`. */
  prefillTokens: number | undefined;
  ageMs: number;
  /** How much of the response body came from the backend. */
  receivedBytes: number;
  /** Seen so far. */
  usage: Usage | undefined;
  /** For how long its stream has had only heartbeats; undefined unless that is for three timeouts. */
  heartbeatsMs: number | undefined;
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

/** The names of the model that a body asks for. */
export interface RequestedNames {
  /** By the client. */
  asked: string;
  /** To the backend. */
  sent: string;
  /** Everywhere else. */
  name: string;
}

/** What would become of a request's body, and why. */
export interface Explanation {
  /** The error that the client would get; undefined if the body would be forwarded. */
  refused: "invalid_json" | "model_not_found" | undefined;
  changed: boolean;
  /** The body as it would be sent. */
  body: string;
  stream: boolean;
  model: RequestedNames | undefined;
  /** The backends that may serve it, in the operator's order. */
  candidates: readonly string[];
  edits: { what: RequestChange; from: string | undefined; to: string | undefined; why: string }[];
  /** What is usually changed and here is not. */
  kept: { what: RequestChange; why: string }[];
}
