import type { KeyId, Outcome, RequestObserver, RequestRecord, Usage } from "../domain.ts";
import type { MonotonicClock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";

/** Collects what log and metrics need of one request while it runs, and reports it once the request has ended. */
export interface RequestTracker {
  readonly requestId: string;
  /** By the monotonic clock. */
  readonly startedAt: number;
  keyId: KeyId | undefined;
  /** The model names asked for by the client and sent to the backend. */
  model: { asked: string; sent: string } | undefined;
  streamed: boolean;
  /** Of the client's response; set before `finish`. */
  status: number;
  upstreamRequestSent(): void;
  /** The upstream's response head arrived. */
  upstreamResponded(): void;
  firstByte(): void;
  /** Part of the upstream's response body arrived. */
  bodyReceived(bytes: number): void;
  /** Registers what runs when the request has ended, in this order. */
  onFinished(callback: () => void): void;
  /** Only the first call counts. */
  finish(outcome: Outcome, details?: FinishDetails): void;
}

interface FinishDetails {
  code?: ErrorCode | undefined;
  cause?: string | undefined;
  usage?: Usage;
}

/** What is known of a request when it arrives. */
interface TrackedRequest extends Pick<RequestRecord, "method" | "path" | "clientAddress"> {
  id: string;
}

const nothing = (): void => {};

export function trackRequest(
  observer: RequestObserver,
  monotonic: MonotonicClock,
  { id, ...request }: TrackedRequest,
): RequestTracker {
  const startedAt = monotonic();
  let sentAt = startedAt;
  let upstreamMs: number | undefined;
  let firstByteMs: number | undefined;
  let receivedBytes: number | undefined;
  let finished = false;
  let finishedCallback = nothing;
  observer.started();
  const tracker: RequestTracker = {
    requestId: id,
    startedAt,
    keyId: undefined,
    model: undefined,
    streamed: false,
    status: 0,
    upstreamRequestSent() {
      sentAt = monotonic();
    },
    upstreamResponded() {
      upstreamMs = monotonic() - sentAt;
      receivedBytes = 0;
    },
    firstByte() {
      firstByteMs ??= monotonic() - startedAt;
    },
    bodyReceived(bytes) {
      receivedBytes = (receivedBytes ?? 0) + bytes;
    },
    onFinished(callback) {
      const earlier = finishedCallback;
      finishedCallback =
        earlier === nothing
          ? callback
          : () => {
              earlier();
              callback();
            };
    },
    finish(outcome, details) {
      if (finished) return;
      finished = true;
      finishedCallback();
      observer.finished({
        requestId: id,
        ...request,
        status: tracker.status,
        outcome,
        keyId: tracker.keyId,
        modelAsked: tracker.model?.asked,
        modelSent: tracker.model?.sent,
        code: details?.code,
        cause: details?.cause,
        receivedBytes,
        streamed: tracker.streamed,
        upstreamMs,
        firstByteMs,
        durationMs: monotonic() - startedAt,
        usage: details?.usage,
      });
    },
  };
  return tracker;
}
