import { closeSync, openSync } from "node:fs";
import { type ErrorCode, type ErrorDetails, errorKindOf, ProxyError } from "../errors.ts";
import { isLimitName } from "../../domain/limits.ts";
import type { SubjectId } from "../../domain/keys.ts";
import type { Outcome } from "../../domain/requests.ts";

/** Why an upstream request ended before its response was whole. Everything that belongs to it is aborted with this. */
export class AbortReason extends Error {
  override name = "AbortReason";

  constructor(
    readonly outcome: Exclude<Outcome, "completed">,
    /** The error that the client gets; undefined if no client is left. */
    readonly code: ErrorCode | undefined,
    /** Tells the operator why the upstream failed; undefined if it did not. */
    override readonly cause?: string,
    readonly details?: ErrorDetails,
    /** Nothing of the request was sent: another backend may get it. */
    readonly isUnsent = false,
  ) {
    super(code ?? outcome);
  }
}

/** The wait for the upstream that was too long. */
type TimeoutCause = "connect_timeout" | "first_byte_timeout" | "between_bytes_timeout";

/** A client's body that makes no progress for this long is given up, whether it is held or streamed; its response no sooner. */
export const noProgressMs = 60_000;

export const clientLeft = (): AbortReason => new AbortReason("client_left", undefined);
/** Its body made no progress for `noProgressMs`. */
export const clientStalled = (): AbortReason => new AbortReason("client_left", "request_timeout");
export const timedOut = (cause: TimeoutCause): AbortReason => new AbortReason("timed_out", "upstream_timeout", cause);
/** No connection was made within the limit. */
export const unconnected = (): AbortReason =>
  new AbortReason("timed_out", "upstream_timeout", "connect_timeout", undefined, true);
/** @param cause a shortage here says nothing of the backend */
export const failed = (cause: string): AbortReason =>
  cause === "EMFILE" || cause === "ENFILE"
    ? new AbortReason("refused", "overloaded", cause)
    : new AbortReason("upstream_failed", "upstream_unreachable", cause);
export const unreadableModelList = (): AbortReason =>
  new AbortReason("upstream_failed", "model_list_unreadable", "model_list_unreadable");
/** The client's stream has begun, and this cannot be a part of it. @param message the backend's own */
export const unexpectedResponse = (status: number, message: string, members?: ErrorDetails["members"]): AbortReason =>
  new AbortReason("upstream_failed", "unexpected_response", `status_${status}`, {
    message: `The backend responded with status ${status}${message === "" ? " and no event stream." : `: ${message}`}`,
    members,
    ...(status >= 400 && status < 600 && { status }),
  });
export const endedByAdmin = (): AbortReason => new AbortReason("ended_by_admin", "ended_by_admin");
/** @param id what was revoked: a key, or a user */
export const revoked = (id: SubjectId): AbortReason =>
  new AbortReason("revoked", id > 0 ? "key_revoked" : "user_inactive");
export const stopped = (): AbortReason => new AbortReason("shutdown", "shutting_down");

/**
 * Classifies a failure by who aborted: a timeout, the client, an administrator, the end of the key, or our stop. If none of
 * them did, the upstream failed, whichever of its many errors the runtime reports.
 */
export function abortReasonOf(error: unknown, signal: AbortSignal): AbortReason {
  if (signal.reason instanceof AbortReason) return signal.reason;
  return error instanceof AbortReason ? error : failed(causeOf(error));
}

/** A backend that starts anew is back soon, and nothing can be executed twice. */
const retrySoon: ErrorDetails = {
  message: errorKindOf("upstream_unreachable").message,
  headers: [["retry-after", "1"]],
};

/** Like `abortReasonOf`, for a request whose response has not begun. */
export function sendFailureOf(error: unknown, signal: AbortSignal): AbortReason {
  const reason = abortReasonOf(error, signal);
  const { outcome, code, cause } = reason;
  if (reason === signal.reason || cause === undefined || !provesUnsent(cause)) return reason;
  return new AbortReason(outcome, code, cause, notSent.has(cause) ? retrySoon : undefined, true);
}

export interface Failure {
  outcome: Outcome;
  code: ErrorCode | undefined;
  cause?: string | undefined;
  details?: ErrorDetails | undefined;
}

/** What ended a request before its response began. */
export function classifyFailure(error: unknown, client: AbortSignal): Failure {
  if (error instanceof AbortReason) return error;
  // A body that stops halfway fails with the runtime's error, not with ours.
  if (client.aborted) return clientLeft();
  if (error instanceof ProxyError) {
    const outcome = isLimitName(error.code) ? "limited" : "refused";
    return { outcome, code: error.code, details: error.details };
  }
  return { outcome: "refused", code: "internal" };
}

/** The error codes of `fetch` for a response that breaks the rules of HTTP (Bun 1.4.5). */
const notHttp: ReadonlySet<unknown> = new Set([
  "InvalidContentLength",
  "InvalidHTTPResponse",
  "Malformed_HTTP_Response",
  "ResponseHeadersTooLarge",
  "UnrequestedUpgrade",
  "UnsupportedTransferEncoding",
]);

/** The code of the system or of TLS for a failure of `fetch`, or a word of ours. Never a message: those contain addresses. */
export function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  if (error.name === "TimeoutError") return "timeout";
  const code = "code" in error ? error.code : undefined;
  if (notHttp.has(code)) return "not_http";
  // A lookup needs descriptors too.
  if (code === "ENOTFOUND") return findDescriptorShortage() ?? code;
  return typeof code === "string" ? code : "unknown";
}

/** @returns EMFILE or ENFILE if no file can be opened */
function findDescriptorShortage(): string | undefined {
  try {
    closeSync(openSync("/dev/null", "r"));
    return undefined;
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : undefined;
  }
}

/**
 * No connection was made. One that breaks is always `ECONNRESET`, or `EPROTO` if it breaks the rules of TLS, be that at its
 * start or after a request.
 */
const notSent: ReadonlySet<string> = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "ENOENT", "ENOTFOUND"]);

/** @returns whether the cause proves that nothing of the request was sent: no connection, or a certificate that we refused */
export const provesUnsent = (cause: string): boolean =>
  notSent.has(cause) || /^(?:CERT|CRL|DEPTH_ZERO|ERR_TLS_CERT|SELF_SIGNED|UNABLE_TO)_/.test(cause);
