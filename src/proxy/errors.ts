import { perLimit } from "../domain/limits.ts";

interface ErrorKind {
  /** Tells the type too. */
  status: number;
  /** What clients see as the code, if not the name here. */
  code?: string;
  message: string;
  headers?: Readonly<Record<string, string>>;
  /** For Anthropic's clients. */
  details?: Readonly<Record<string, string>>;
  /** A rule of the key's: whom to ask stands at the end of its sentence. */
  isRule?: true;
}

/** A refusal by a limit of the key; its own message names the limit and when to try again. */
const limited: ErrorKind = { status: 429, message: "A limit of this API key is reached.", isRule: true };

/** Unless told not to, agents repeat a wrong key for minutes, and the common SDKs a 504, which starts long work again. */
const notAgain = { "x-should-retry": "false" };
const againIn = (seconds: number) => ({ "retry-after": String(seconds) });

/**
 * Why Tollgate responds with an error of its own at `/v1/*`. The sentences are fixed: the runtime's own messages would show
 * strangers our network.
 */
const errorKinds = {
  invalid_host: { status: 400, message: "The Host header is missing or malformed." },
  invalid_request: { status: 400, message: "Content-Length must not stand twice." },
  invalid_path: {
    status: 400,
    message: "The path must not contain '..', and may have up to 64 segments, or 8 if one or two are empty.",
  },
  method_not_allowed: {
    status: 405,
    message: "This method is not supported here.",
    headers: { allow: "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" },
  },
  upgrade_not_supported: {
    status: 426,
    message: "Protocol upgrades are not supported; use plain HTTP.",
    // RFC 9110 section 15.5.22: a 426 names the protocol to use instead.
    headers: { upgrade: "HTTP/1.1" },
  },
  invalid_api_key: { status: 401, message: "Invalid API key.", headers: { "www-authenticate": "Bearer", ...notAgain } },
  ...perLimit(() => limited),
  scope_not_allowed: { status: 403, message: "This API key may only post GPU samples.", headers: notAgain },
  model_not_allowed: {
    status: 403,
    message: "This API key may not use this model; GET /v1/models lists those that it may use.",
    headers: notAgain,
    isRule: true,
  },
  path_not_allowed: {
    status: 403,
    message: "This API key may not use this path; GET /v1/tollgate/key lists those that it may use.",
    headers: notAgain,
    isRule: true,
  },
  queue_full: {
    status: 503,
    message: "Too many requests wait for the backend; try again shortly.",
    headers: againIn(5),
  },
  queue_timeout: {
    status: 503,
    message: "The request waited too long for the backend; try again shortly.",
    headers: againIn(5),
  },
  // Its own message has the names that there are.
  model_not_found: { status: 404, message: "There is no such model; GET /v1/models lists those that there are." },
  backend_unavailable: {
    status: 503,
    message: "No backend of this model is available; try again shortly.",
    headers: againIn(10),
  },
  key_revoked: { status: 401, message: "The API key was revoked while the request was running.", headers: notAgain },
  user_required: {
    status: 401,
    message: "The request does not say whose it is, which this API key requires.",
    headers: notAgain,
    isRule: true,
  },
  user_inactive: { status: 403, message: "You may not send requests at present.", headers: notAgain, isRule: true },
  invalid_user_token: {
    status: 401,
    message: "The token that says whose the request is, is invalid or has expired.",
    headers: notAgain,
  },
  invalid_json: {
    status: 400,
    message: "The JSON body must be UTF-8 and must not repeat a member more than 64 times.",
  },
  // Its own message names the member, and why.
  member_not_allowed: { status: 400, message: "A member of the body is not allowed here." },
  unsupported_body: {
    status: 415,
    message: "The body must be one JSON object, plain or encoded as gzip, deflate, br or zstd.",
    // RFC 9110 section 15.5.16: a 415 names the encodings that are accepted.
    headers: { "accept-encoding": "gzip, deflate, br, zstd" },
  },
  body_too_large: { status: 413, message: "The JSON body is larger than this server accepts (MAX_BODY_BYTES)." },
  too_many_bytes_held: {
    status: 429,
    message: "Too many bytes of request bodies are being held; try again shortly.",
    headers: againIn(2),
  },
  too_many_stored: {
    status: 429,
    message:
      'This API key has 1000000 responses, files and batches; each is forgotten 400 days after its last use. A response with "store": false is none of them.',
    headers: notAgain,
  },
  not_found: { status: 404, message: "Not found." },
  path_without_v1: {
    status: 404,
    code: "not_found",
    message: "Not found: the API is below /v1, so the base URL of a client must end in /v1.",
  },
  request_timeout: {
    status: 408,
    message:
      "The request body came too slowly: below 2 kB/s, below 64 KiB/s on a busy server, or nothing for 60 seconds.",
  },
  overloaded: {
    status: 503,
    message: "The server has no file descriptor left for a connection to the backend; try again shortly.",
    headers: againIn(1),
  },
  upstream_unreachable: { status: 502, message: "The backend could not be reached, or broke off its response." },
  upstream_timeout: { status: 504, message: "The backend did not respond in time.", headers: notAgain },
  // Only in a stream, whose head has gone out; the message has the status.
  unexpected_response: { status: 502, message: "The backend did not respond with an event stream." },
  // In the log alone: the client has what the backend sent.
  error_in_response: { status: 502, message: "The backend's response says that it failed." },
  model_list_unreadable: {
    status: 502,
    message: "The backend's model list could not be limited to the models that this API key may use.",
    headers: notAgain,
  },
  shutting_down: { status: 503, message: "The server is shutting down.", headers: againIn(1) },
  // A retry would start again what was just ended. Codex (0.169) repeats what gets 403, 410 or 503, Claude Code (2.1.332)
  // what lacks the detail, by which it knows what must not be sent again.
  ended_by_admin: {
    status: 400,
    message: "An administrator ended this request.",
    headers: notAgain,
    details: { error_code: "dlp_request_denied" },
  },
  storage_unavailable: { status: 503, message: "The key cannot be checked right now.", headers: againIn(1) },
  limits_unavailable: {
    status: 503,
    message: "The limits of this API key cannot be checked right now.",
    headers: againIn(2),
  },
  internal: { status: 500, message: "Internal error." },
} as const satisfies Readonly<Record<string, ErrorKind>>;

export type ErrorCode = keyof typeof errorKinds;

export const errorKindOf = (code: ErrorCode): ErrorKind => errorKinds[code];

/** What else there is, is an `api_error`. */
const types = new Map([
  ...[400, 405, 413, 415, 426].map((status) => [status, "invalid_request_error"] as const),
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [408, "timeout_error"],
  [429, "rate_limit_error"],
  [504, "timeout_error"],
]);

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
  const kind = errorKindOf(code);
  const message = details?.message ?? kind.message;
  return {
    type: "error",
    error: {
      type: types.get(kind.status) ?? "api_error",
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
  const { status, headers } = errorKindOf(code);
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
