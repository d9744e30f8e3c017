import type { Outcome } from "../../domain.ts";
import { type ErrorCode, ProxyError } from "../errors.ts";

/** Why an upstream request ended before its response was whole. Everything that belongs to it is aborted with this. */
export class AbortReason extends Error {
  override name = "AbortReason";

  constructor(
    readonly outcome: Exclude<Outcome, "completed" | "refused">,
    /** The error that the client gets; undefined if no client is left. */
    readonly code: ErrorCode | undefined,
  ) {
    super(code ?? outcome);
  }
}

export const clientLeft = (): AbortReason => new AbortReason("client_left", undefined);
export const timedOut = (): AbortReason => new AbortReason("timed_out", "upstream_timeout");
export const stopped = (): AbortReason => new AbortReason("shutdown", "shutting_down");

/**
 * Classifies a failure by who aborted: the read timeout, the client, or our stop. If none of them did, the upstream
 * failed, whichever of its many errors the runtime reports.
 */
export function abortReasonOf(error: unknown, signal: AbortSignal): AbortReason {
  if (signal.reason instanceof AbortReason) return signal.reason;
  return error instanceof AbortReason ? error : new AbortReason("upstream_failed", "upstream_unreachable");
}

export interface Failure {
  outcome: Outcome;
  code: ErrorCode | undefined;
}

/** What ended a request before its response began. */
export function classifyFailure(error: unknown, client: AbortSignal): Failure {
  if (error instanceof AbortReason) return error;
  // A body that stops halfway fails with the runtime's error, not with ours.
  if (client.aborted) return clientLeft();
  return { outcome: "refused", code: error instanceof ProxyError ? error.code : "internal" };
}
