import type { MonotonicClock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";
import type { RequestObserver, Outcome } from "../domain.ts";
import type { Usage } from "../domain.ts";

/** What is noted of one request while it runs, handed to the observer once it is over. */
export interface RequestTracker {
  keyId: number | undefined;
  streamed: boolean;
  status: number;
  /** The request went to the upstream now. */
  upstreamRequestSent(): void;
  /** The upstream's response head came. */
  upstreamResponded(): void;
  firstByte(): void;
  /** Called once it is over. */
  onFinished(callback: () => void): void;
  /** Only the first call counts. */
  finish(outcome: Outcome, details?: { code?: ErrorCode | undefined; usage?: Usage }): void;
}

/** @param monotonic milliseconds that never jump */
export function trackRequest(
  observer: RequestObserver,
  monotonic: MonotonicClock,
  method: string,
  path: string,
): RequestTracker {
  const begunAt = monotonic();
  let sentAt = begunAt;
  let upstreamMs: number | undefined;
  let firstByteMs: number | undefined;
  let finished = false;
  let afterwards = (): void => {};
  observer.started();
  const tracker: RequestTracker = {
    keyId: undefined,
    streamed: false,
    // The client left before there was anything to say (nginx's number for it).
    status: 499,
    upstreamRequestSent() {
      sentAt = monotonic();
    },
    upstreamResponded() {
      upstreamMs = monotonic() - sentAt;
    },
    firstByte() {
      firstByteMs ??= monotonic() - begunAt;
    },
    onFinished(callback) {
      afterwards = callback;
    },
    finish(outcome, details) {
      if (finished) return;
      finished = true;
      afterwards();
      observer.finished({
        method,
        path,
        status: tracker.status,
        outcome,
        keyId: tracker.keyId,
        code: details?.code,
        streamed: tracker.streamed,
        upstreamMs,
        firstByteMs,
        durationMs: monotonic() - begunAt,
        usage: details?.usage,
      });
    },
  };
  return tracker;
}
