import type { ErrorCode } from "../errors.ts";
import type { Outcome } from "../../domain.ts";

/** Why a call to the upstream ended before its answer was whole: the reason that everything of it is aborted with. */
export class AbortReason extends Error {
  override name = "CallEnded";

  constructor(
    readonly outcome: Exclude<Outcome, "completed" | "refused">,
    /** What the client is told; undefined where nobody is left to be told. */
    readonly code: ErrorCode | undefined,
  ) {
    super(code ?? outcome);
  }
}

export const clientLeft = (): AbortReason => new AbortReason("client_left", undefined);
export const timedOut = (): AbortReason => new AbortReason("timed_out", "upstream_timeout");
export const stopped = (): AbortReason => new AbortReason("upstream_failed", "shutting_down");

/**
 * Classifies a failure by who aborted: our deadline, the client, our stop, or none of them. In the last case it is the
 * upstream's doing, whichever of its many words for it the runtime used.
 */
export function abortReasonOf(error: unknown, signal: AbortSignal): AbortReason {
  if (signal.reason instanceof AbortReason) return signal.reason;
  return error instanceof AbortReason ? error : new AbortReason("upstream_failed", "upstream_unreachable");
}
