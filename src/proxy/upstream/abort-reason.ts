import type { ErrorCode } from "../errors.ts";
import type { Outcome } from "../../domain.ts";

/** Why a call to the upstream ended before its answer was whole: the reason that everything of it is aborted with. */
export class CallEnded extends Error {
  override name = "CallEnded";

  constructor(
    readonly outcome: Exclude<Outcome, "completed" | "refused">,
    /** What the client is told; undefined where nobody is left to be told. */
    readonly code: ErrorCode | undefined,
  ) {
    super(code ?? outcome);
  }
}

export const clientLeft = (): CallEnded => new CallEnded("client_left", undefined);
export const timedOut = (): CallEnded => new CallEnded("timed_out", "upstream_timeout");
export const stopped = (): CallEnded => new CallEnded("upstream_failed", "shutting_down");

/**
 * Classifies a failure by who aborted: our deadline, the client, our stop, or none of them. In the last case it is the
 * upstream's doing, whichever of its many words for it the runtime used.
 */
export function callEndedBy(error: unknown, signal: AbortSignal): CallEnded {
  if (signal.reason instanceof CallEnded) return signal.reason;
  return error instanceof CallEnded ? error : new CallEnded("upstream_failed", "upstream_unreachable");
}
