import type { MonotonicClock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";
import type { KeyId } from "../domain/keys.ts";
import type {
  Outcome,
  RequestChanges,
  RequestObserver,
  RequestRecord,
  RunningHandle,
  RunningRequest,
} from "../domain/requests.ts";
import type { Usage } from "../domain/usage.ts";

/** Collects what log and metrics need of one request while it runs, and reports it once the request has ended. */
export interface RequestTracker {
  readonly requestId: string;
  /** By the monotonic clock. */
  readonly startedAt: number;
  keyId: KeyId | undefined;
  /** The model names asked for by the client and sent to the backend. */
  model: { asked: string; sent: string } | undefined;
  changes: RequestChanges | undefined;
  /** How often it was sent to the backend; undefined: once, or not at all. */
  sends: number | undefined;
  /** Charged to limits of tokens by an estimate; undefined: nothing. */
  estimatedTokens: number | undefined;
  /** Its body was read, or is passed on as it comes. */
  isReceived: boolean;
  streamed: boolean;
  /** The client's response has it; set before `finish`. */
  status: number;
  /** As the ledger has it, together with its counts; set before `finish`. */
  written: RequestRecord | undefined;
  /** Reads the usage seen so far. */
  readUsage: (() => Usage) | undefined;
  /** @param backend its host and port */
  upstreamRequestSent(backend?: string): void;
  /** The upstream's response head arrived. */
  upstreamResponded(): void;
  /** The client got the head of an event stream before the upstream responded: 200 is its status, whatever follows. */
  headSent(): void;
  firstByte(): void;
  /** Part of the upstream's response body arrived. */
  bodyReceived(bytes: number): void;
  /** Registers what ends the request; called at once if its end was requested before. */
  onEndRequested(end: () => void): void;
  /** Registers what runs when the request has ended, in this order. */
  onFinished(callback: () => void): void;
  /** The request as it would end now. */
  describe(outcome: Outcome, details?: FinishDetails): RequestRecord;
  /** Reports how it ended. Only the first call counts. */
  finish(outcome: Outcome, details?: FinishDetails): void;
}

export interface FinishDetails {
  code?: ErrorCode | undefined;
  cause?: string | undefined;
  usage?: Usage;
  estimatedTokens?: number | undefined;
  isUncounted?: boolean;
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

/** How far a request is. Times are milliseconds. */
interface Progress {
  /** By the monotonic clock. */
  sentAt: number;
  backend: string | undefined;
  queueMs: number | undefined;
  upstreamMs: number | undefined;
  firstByteMs: number | undefined;
  receivedBytes: number | undefined;
  headSent: boolean;
}

const nothingYet: Omit<Progress, "sentAt"> = {
  backend: undefined,
  queueMs: undefined,
  upstreamMs: undefined,
  firstByteMs: undefined,
  receivedBytes: undefined,
  headSent: false,
};

export function trackRequest(
  { addInFlight, observer, monotonic }: TrackerDeps,
  request: TrackedRequest,
): RequestTracker {
  const startedAt = monotonic();
  const progress: Progress = { ...nothingYet, sentAt: startedAt };
  let finished = false;
  let endRequested = false;
  let endCallback: (() => void) | undefined;
  let finishedCallback = nothing;

  const tracker: RequestTracker = {
    requestId: request.id,
    startedAt,
    keyId: undefined,
    model: undefined,
    changes: undefined,
    sends: undefined,
    estimatedTokens: undefined,
    isReceived: false,
    streamed: false,
    status: 0,
    written: undefined,
    readUsage: undefined,
    upstreamRequestSent(backend) {
      progress.backend = backend;
      progress.sentAt = monotonic();
      progress.queueMs = progress.sentAt - startedAt;
    },
    upstreamResponded() {
      progress.upstreamMs = monotonic() - progress.sentAt;
      progress.receivedBytes = 0;
    },
    headSent: () => void (progress.headSent = true),
    firstByte() {
      progress.firstByteMs ??= monotonic() - startedAt;
    },
    bodyReceived(bytes) {
      progress.receivedBytes = (progress.receivedBytes ?? 0) + bytes;
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
    describe: (outcome, details) =>
      recordOf(request, tracker, progress, { outcome, durationMs: monotonic() - startedAt, details }),
    finish(outcome, details) {
      if (finished) return;
      finished = true;
      finishedCallback();
      endInFlight();
      observer.finished(finalRecord(tracker.describe(outcome, details), tracker.written));
    },
  };
  const endInFlight = addInFlight({
    describe: () => runningOf(request, tracker, progress, monotonic() - startedAt),
    end() {
      endRequested = true;
      endCallback?.();
    },
  });
  return tracker;
}

/** A row is written with the counts, and again only if the request lasted longer than before that by both of these. */
const amendedMs = 5;
const amendedShare = 0.01;

/** What everything that reports the request says of it, its row too. */
function finalRecord(record: RequestRecord, written: RequestRecord | undefined): RequestRecord {
  if (written === undefined) return record;
  const { durationMs, receivedBytes } = written;
  const longerMs = record.durationMs - durationMs;
  const isOutdated = longerMs >= amendedMs && longerMs >= durationMs * amendedShare;
  return Object.assign(record, { writtenMs: durationMs }, isOutdated ? undefined : { durationMs, receivedBytes });
}

interface End {
  outcome: Outcome;
  durationMs: number;
  details: FinishDetails | undefined;
}

function recordOf(
  { id, clientAddress, clientProgram, method, path }: TrackedRequest,
  tracker: RequestTracker,
  { receivedBytes, backend, queueMs, upstreamMs, firstByteMs, headSent }: Progress,
  { outcome, durationMs, details }: End,
): RequestRecord {
  return {
    requestId: id,
    clientAddress,
    clientProgram,
    method,
    path,
    status: headSent ? 200 : tracker.status,
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
    durationMs,
    usage: details?.usage,
    estimatedTokens: details?.estimatedTokens ?? tracker.estimatedTokens,
    isUncounted: details?.isUncounted ?? false,
    sends: tracker.sends,
  };
}

function runningOf(
  { id, clientAddress, method, path }: TrackedRequest,
  { keyId, model, isReceived, readUsage }: RequestTracker,
  { backend, upstreamMs, receivedBytes }: Progress,
  ageMs: number,
): RunningRequest {
  return {
    requestId: id,
    clientAddress,
    method,
    path,
    keyId,
    model: model?.sent,
    backend,
    state: !isReceived ? "receiving" : upstreamMs === undefined ? "waiting" : "running",
    ageMs,
    receivedBytes: receivedBytes ?? 0,
    usage: readUsage?.(),
  };
}
