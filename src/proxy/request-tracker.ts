import type { KeyId } from "../domain/keys.ts";
import type { Usage } from "../domain/usage.ts";
import type { Outcome } from "../domain/requests.ts";
import type { RequestObserver } from "../domain/requests.ts";
import type { RequestRecord } from "../domain/requests.ts";
import type { RequestChanges } from "../domain/requests.ts";
import type { RunningHandle } from "../domain/requests.ts";
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
  changes: RequestChanges | undefined;
  /** Its body was read, or is passed on as it comes. */
  isReceived: boolean;
  streamed: boolean;
  /** Of the client's response; set before `finish`. */
  status: number;
  /** @param backend its host and port */
  upstreamRequestSent(backend?: string): void;
  /** The upstream's response head arrived. */
  upstreamResponded(): void;
  firstByte(): void;
  /** Part of the upstream's response body arrived. */
  bodyReceived(bytes: number): void;
  /** Registers what reads the usage seen so far. */
  onUsageSeen(read: () => Usage): void;
  /** Registers what ends the request; called at once if its end was requested before. */
  onEndRequested(end: () => void): void;
  /** Registers what runs when the request has ended, in this order. */
  onFinished(callback: () => void): void;
  /** The request as it ends now, for the ledger; `finish` reports it later. */
  recordForLedger(outcome: Outcome, details?: FinishDetails): RequestRecord;
  /** Only the first call counts. */
  finish(outcome: Outcome, details?: FinishDetails): void;
}

export interface FinishDetails {
  code?: ErrorCode | undefined;
  cause?: string | undefined;
  usage?: Usage;
}

/** What is known of a request when it arrives. */
interface TrackedRequest extends Pick<RequestRecord, "method" | "path" | "clientAddress" | "clientProgram"> {
  id: string;
}

const nothing = (): void => {};

export interface TrackerDeps {
  /** Called with each request. @returns called when it has ended */
  addInFlight: (request: RunningHandle) => () => void;
  observer: RequestObserver;
  monotonic: MonotonicClock;
}

export function trackRequest(
  { addInFlight, observer, monotonic }: TrackerDeps,
  { id, clientAddress, clientProgram, method, path }: TrackedRequest,
): RequestTracker {
  const startedAt = monotonic();
  let sentAt = startedAt;
  let backend: string | undefined;
  let queueMs: number | undefined;
  let upstreamMs: number | undefined;
  let firstByteMs: number | undefined;
  let receivedBytes: number | undefined;
  let finished = false;
  let isInLedger = false;
  let readUsage: (() => Usage) | undefined;
  let endRequested = false;
  let endCallback: (() => void) | undefined;
  let finishedCallback = nothing;

  const describe = (outcome: Outcome, details: FinishDetails | undefined): RequestRecord => ({
    requestId: id,
    clientAddress,
    clientProgram,
    method,
    path,
    status: tracker.status,
    outcome,
    keyId: tracker.keyId,
    modelAsked: tracker.model?.asked,
    modelSent: tracker.model?.sent,
    code: details?.code,
    cause: details?.cause,
    receivedBytes,
    streamed: tracker.streamed,
    backend,
    changes: tracker.changes,
    queueMs,
    upstreamMs,
    firstByteMs,
    durationMs: monotonic() - startedAt,
    usage: details?.usage,
    isInLedger,
  });

  const running: RunningHandle = {
    describe: () => ({
      requestId: id,
      clientAddress,
      method,
      path,
      keyId: tracker.keyId,
      model: tracker.model?.sent,
      backend,
      state: !tracker.isReceived ? "receiving" : upstreamMs === undefined ? "waiting" : "running",
      ageMs: monotonic() - startedAt,
      receivedBytes: receivedBytes ?? 0,
      usage: readUsage?.(),
    }),
    end() {
      endRequested = true;
      endCallback?.();
    },
  };
  const endInFlight = addInFlight(running);
  const tracker: RequestTracker = {
    requestId: id,
    startedAt,
    keyId: undefined,
    model: undefined,
    changes: undefined,
    isReceived: false,
    streamed: false,
    status: 0,
    upstreamRequestSent(sentTo) {
      backend = sentTo;
      sentAt = monotonic();
      queueMs = sentAt - startedAt;
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
    onUsageSeen(read) {
      readUsage = read;
    },
    onEndRequested(end) {
      endCallback = end;
      if (endRequested) end();
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
    recordForLedger(outcome, details) {
      isInLedger = true;
      return describe(outcome, details);
    },
    finish(outcome, details) {
      if (finished) return;
      finished = true;
      finishedCallback();
      endInFlight();
      observer.finished(describe(outcome, details));
    },
  };
  return tracker;
}
