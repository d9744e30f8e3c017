import { type LimitName, perLimit } from "../domain/limits.ts";

/** Why Tollgate responds with an error of its own at `/v1/*`. */
export type ErrorCode =
  | "invalid_host"
  | "invalid_request"
  | "invalid_path"
  | "method_not_allowed"
  | "upgrade_not_supported"
  | "invalid_api_key"
  | LimitName
  | "scope_not_allowed"
  | "model_not_allowed"
  | "path_not_allowed"
  | "model_not_found"
  | "key_revoked"
  | "queue_full"
  | "queue_timeout"
  | "backend_unavailable"
  | "invalid_json"
  | "member_not_allowed"
  | "unsupported_body"
  | "body_too_large"
  | "request_timeout"
  | "not_found"
  | "path_without_v1"
  | "too_many_bytes_held"
  | "too_many_stored"
  | "overloaded"
  | "upstream_unreachable"
  | "upstream_timeout"
  | "unexpected_response"
  | "error_in_response"
  | "model_list_unreadable"
  | "shutting_down"
  | "ended_by_admin"
  | "storage_unavailable"
  | "limits_unavailable"
  | "internal";

interface ErrorKind {
  status: number;
  /** What clients see as the code, if not the name here. */
  code?: string;
  type: string;
  message: string;
  headers?: Readonly<Record<string, string>>;
  /** For Anthropic's clients. */
  details?: Readonly<Record<string, string>>;
  /** A rule of the key's: whom to ask stands at the end of its sentence. */
  isRule?: true;
}

/** A refusal by a limit of the key; its own message names the limit and when to try again. */
const limited: ErrorKind = {
  status: 429,
  type: "rate_limit_error",
  message: "A limit of this API key is reached.",
  isRule: true,
};

/** The sentences are fixed: the runtime's own messages would show strangers our network. */
export const errorKinds: Readonly<Record<ErrorCode, ErrorKind>> = {
  invalid_host: { status: 400, type: "invalid_request_error", message: "The Host header is missing or malformed." },
  invalid_request: { status: 400, type: "invalid_request_error", message: "Content-Length must not stand twice." },
  invalid_path: {
    status: 400,
    type: "invalid_request_error",
    message: "The path must not contain '..', and may have up to 64 segments, or 8 if one or two are empty.",
  },
  method_not_allowed: {
    status: 405,
    type: "invalid_request_error",
    message: "This method is not supported here.",
    headers: { allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" },
  },
  upgrade_not_supported: {
    status: 426,
    type: "invalid_request_error",
    message: "Protocol upgrades are not supported; use plain HTTP.",
    // RFC 9110 section 15.5.22: a 426 names the protocol to use instead.
    headers: { upgrade: "HTTP/1.1" },
  },
  invalid_api_key: {
    status: 401,
    type: "authentication_error",
    message: "Invalid API key.",
    // Some agents repeat a wrong key for minutes unless told not to.
    headers: { "www-authenticate": "Bearer", "x-should-retry": "false" },
  },
  ...perLimit(() => limited),
  scope_not_allowed: {
    status: 403,
    type: "permission_error",
    message: "This API key may only post GPU samples.",
    headers: { "x-should-retry": "false" },
  },
  model_not_allowed: {
    status: 403,
    type: "permission_error",
    message: "This API key may not use this model; GET /v1/models lists those that it may use.",
    headers: { "x-should-retry": "false" },
    isRule: true,
  },
  path_not_allowed: {
    status: 403,
    type: "permission_error",
    message: "This API key may not use this path; GET /v1/tollgate/key lists those that it may use.",
    headers: { "x-should-retry": "false" },
    isRule: true,
  },
  queue_full: {
    status: 503,
    type: "api_error",
    message: "Too many requests wait for the backend; try again shortly.",
    headers: { "retry-after": "5" },
  },
  queue_timeout: {
    status: 503,
    type: "api_error",
    message: "The request waited too long for the backend; try again shortly.",
    headers: { "retry-after": "5" },
  },
  // Its own message has the names that there are.
  model_not_found: {
    status: 404,
    type: "not_found_error",
    message: "There is no such model; GET /v1/models lists those that there are.",
  },
  backend_unavailable: {
    status: 503,
    type: "api_error",
    message: "No backend of this model is available; try again shortly.",
    headers: { "retry-after": "10" },
  },
  key_revoked: {
    status: 401,
    type: "authentication_error",
    message: "The API key was revoked while the request was running.",
    headers: { "x-should-retry": "false" },
  },
  invalid_json: {
    status: 400,
    type: "invalid_request_error",
    message: "The JSON body must be UTF-8 and must not repeat a member more than 64 times.",
  },
  // Its own message names the member, and why.
  member_not_allowed: {
    status: 400,
    type: "invalid_request_error",
    message: "A member of the body is not allowed here.",
  },
  unsupported_body: {
    status: 415,
    type: "invalid_request_error",
    message: "The body must be one JSON object, plain or encoded as gzip, deflate, br or zstd.",
    // RFC 9110 section 15.5.16: a 415 names the encodings that are accepted.
    headers: { "accept-encoding": "gzip, deflate, br, zstd" },
  },
  body_too_large: {
    status: 413,
    type: "invalid_request_error",
    message: "The JSON body is larger than this server accepts (MAX_BODY_BYTES).",
  },
  too_many_bytes_held: {
    status: 429,
    type: "rate_limit_error",
    message: "Too many bytes of request bodies are being held; try again shortly.",
    headers: { "retry-after": "2" },
  },
  too_many_stored: {
    status: 429,
    type: "rate_limit_error",
    message:
      'This API key has 1000000 responses, files and batches; each is forgotten 400 days after its last use. A response with "store": false is none of them.',
    headers: { "x-should-retry": "false" },
  },
  not_found: { status: 404, type: "not_found_error", message: "Not found." },
  path_without_v1: {
    status: 404,
    code: "not_found",
    type: "not_found_error",
    message: "Not found: the API is below /v1, so the base URL of a client must end in /v1.",
  },
  request_timeout: {
    status: 408,
    type: "timeout_error",
    message:
      "The request body came too slowly: below 2 kB/s, below 64 KiB/s on a busy server, or nothing for 60 seconds.",
  },
  overloaded: {
    status: 503,
    type: "api_error",
    message: "The server has no file descriptor left for a connection to the backend; try again shortly.",
    headers: { "retry-after": "1" },
  },
  upstream_unreachable: {
    status: 502,
    type: "api_error",
    message: "The backend could not be reached, or broke off its response.",
  },
  upstream_timeout: {
    status: 504,
    type: "timeout_error",
    message: "The backend did not respond in time.",
    // The common SDKs retry a 504 unless told not to, and a retry starts the same long work again.
    headers: { "x-should-retry": "false" },
  },
  // Only in a stream, whose head has gone out; the message has the status.
  unexpected_response: { status: 502, type: "api_error", message: "The backend did not respond with an event stream." },
  // In the log alone: the client has what the backend sent.
  error_in_response: { status: 502, type: "api_error", message: "The backend's response says that it failed." },
  model_list_unreadable: {
    status: 502,
    type: "api_error",
    message: "The backend's model list could not be limited to the models that this API key may use.",
    headers: { "x-should-retry": "false" },
  },
  shutting_down: {
    status: 503,
    type: "api_error",
    message: "The server is shutting down.",
    headers: { "retry-after": "1" },
  },
  // A retry would start again what was just ended. Codex (0.169) repeats what gets 403, 410 or 503, Claude Code (2.1.332)
  // what lacks the detail, by which it knows what must not be sent again.
  ended_by_admin: {
    status: 400,
    type: "invalid_request_error",
    message: "An administrator ended this request.",
    headers: { "x-should-retry": "false" },
    details: { error_code: "dlp_request_denied" },
  },
  storage_unavailable: {
    status: 503,
    type: "api_error",
    message: "The key cannot be checked right now.",
    headers: { "retry-after": "1" },
  },
  limits_unavailable: {
    status: 503,
    type: "api_error",
    message: "The limits of this API key cannot be checked right now.",
    headers: { "retry-after": "2" },
  },
  internal: { status: 500, type: "api_error", message: "Internal error." },
};

/** What one error says besides its kind. */
export interface ErrorDetails {
  message: string;
  /** In place of the kind's. */
  status?: number;
  headers?: readonly (readonly [name: string, value: string])[];
  /** The member `error` has these too, for the clients of one dialect; they come last, so a `type` here replaces the kind's. */
  members?: Readonly<Record<string, string | number>> | undefined;
}

export interface ErrorBody {
  type: "error";
  error: { type: string; message: string; param: null; code: string | number };
  request_id?: string;
}

interface ErrorFrame {
  /** For Anthropic's SDKs, which read it from the body too. */
  requestId?: string | undefined;
  /** Whom to ask, of refusals by a rule of the key's. */
  contact?: string | undefined;
}

/** One shape that both families of SDKs read: OpenAI's use `error.code`, Anthropic's `type` and `error.type`. */
export function errorBody(
  code: ErrorCode,
  details: ErrorDetails | undefined,
  { requestId, contact }: ErrorFrame,
): ErrorBody {
  const kind = errorKinds[code];
  const message = details?.message ?? kind.message;
  return {
    type: "error",
    error: {
      type: kind.type,
      message: kind.isRule === true && contact !== undefined ? `${message} ${contact}` : message,
      param: null,
      code: kind.code ?? code,
      ...(kind.details && { details: kind.details }),
      ...details?.members,
    },
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/** Refuses a request before anything is sent to the upstream. */
export class ProxyError extends Error {
  override name = "ProxyError";

  constructor(
    readonly code: ErrorCode,
    readonly details?: ErrorDetails,
  ) {
    super(code);
  }
}

export function errorResponse(code: ErrorCode, details?: ErrorDetails, frame: ErrorFrame = {}): Response {
  const { status, headers } = errorKinds[code];
  return Response.json(errorBody(code, details, frame), {
    status: details?.status ?? status,
    headers: { "x-content-type-options": "nosniff", ...headers, ...Object.fromEntries(details?.headers ?? []) },
  });
}

/** The client is gone, so nothing is sent. Log and metrics show nginx's number for it. */
const clientClosedRequest = 499;

/** @param code undefined if the client left */
export function failureResponse(code: ErrorCode | undefined, details?: ErrorDetails, frame?: ErrorFrame): Response {
  if (code === undefined) return new Response(null, { status: clientClosedRequest });
  return errorResponse(code, details, frame);
}
