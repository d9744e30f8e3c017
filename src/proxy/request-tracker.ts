import type { MonotonicClock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";
import type { ChoiceReason, Expectation } from "../domain/backends.ts";
import { findCacheLoss, type LastTurn } from "../domain/cache-loss.ts";
import type { KeyId } from "../domain/keys.ts";
import type {
  Outcome,
  RequestChanges,
  RequestedNames,
  RequestObserver,
  RequestRecord,
  RunningHandle,
  RunningRequest,
} from "../domain/requests.ts";
import type { CountedUsage, Usage } from "../domain/usage.ts";
import type { Wait } from "./waiting.ts";

/** Collects what log and metrics need of one request while it runs, and reports it once the request has ended. */
export interface RequestTracker {
  readonly requestId: string;
  /** By the monotonic clock. */
  readonly startedAt: number;
  readonly clientProgram: string | undefined;
  /** What it is for, as far as its client says or shows that. */
  requestClass: string | undefined;
  keyId: KeyId | undefined;
  model: RequestedNames | undefined;
  changes: RequestChanges | undefined;
  /** The backend that it was sent to last, as the request log names it; undefined: it was not sent. */
  backend: string | undefined;
  /** Why it was sent there; undefined: there was no choice. */
  reason: ChoiceReason | undefined;
  expectation: Expectation | undefined;
  lastTurn: LastTurn | undefined;
  /** A number that its turns have in common. */
  conversation: number | undefined;
  /** How often it was handed to a connection. */
  sends: number;
  /** Charged to limits of tokens by an estimate; undefined: nothing. */
  estimatedTokens: number | undefined;
  /** Its body was read, or is passed on as it comes. */
  isReceived: boolean;
  /** Its wait until it may be sent; undefined: it has none. */
  turn: Wait | undefined;
  streamed: boolean;
  /** The client's response has it; set before `finish`. */
  status: number;
  /** The record that the ledger has, together with its counts; set before `finish`. */
  written: RequestRecord | undefined;
  /** Reads the usage seen so far. */
  readUsage: (() => Usage) | undefined;
  /** Called for each backend that it is sent to. */
  upstreamRequestSent(backend: string): void;
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
  onFinished(callback: FinishedCallback): void;
  /** The request as it would end now. */
  describe(outcome: Outcome, details?: FinishDetails): RequestRecord;
  /** Reports how it ended. Only the first call counts. */
  finish(outcome: Outcome, details?: FinishDetails): void;
}

/** @param usage what the response reported; undefined: nothing is known of it */
type FinishedCallback = (usage: CountedUsage | undefined) => void;

export interface FinishDetails {
  code?: ErrorCode | undefined;
  cause?: string | undefined;
  usage?: CountedUsage;
  estimatedTokens?: number | undefined;
  isUncounted?: boolean;
}

/** What is known of a request when it arrives. */
interface TrackedRequest extends Pick<
  RequestRecord,
  "method" | "path" | "clientAddress" | "clientProgram" | "requestClass"
> {
  id: string;
}

const nothing = (): void => {};

export interface TrackerDeps {
  /** Called with each request. @returns called when it has ended */
  addInFlight: (request: RunningHandle) => () => void;
  observer: RequestObserver;
  monotonic: MonotonicClock;
  /** The backends that have ever reported cached input. */
  cacheReporters: Set<string>;
}

/** How far a request is. Times are milliseconds. */
interface Progress {
  /** By the monotonic clock. */
  sentAt: number;
  queueMs: number | undefined;
  upstreamMs: number | undefined;
  firstByteMs: number | undefined;
  receivedBytes: number | undefined;
  headSent: boolean;
}

const nothingYet: Omit<Progress, "sentAt"> = {
  queueMs: undefined,
  upstreamMs: undefined,
  firstByteMs: undefined,
  receivedBytes: undefined,
  headSent: false,
};

const unsent = {
  backend: undefined,
  reason: undefined,
  expectation: undefined,
  lastTurn: undefined,
  conversation: undefined,
} satisfies Partial<RequestTracker>;

export function trackRequest(
  { addInFlight, observer, monotonic, cacheReporters }: TrackerDeps,
  request: TrackedRequest,
): RequestTracker {
  const startedAt = monotonic();
  const progress: Progress = { ...nothingYet, sentAt: startedAt };
  let finished = false;
  let endRequested = false;
  let endCallback: (() => void) | undefined;
  let finishedCallback: FinishedCallback = nothing;

  const tracker: RequestTracker = {
    requestId: request.id,
    startedAt,
    clientProgram: request.clientProgram,
    requestClass: request.requestClass,
    keyId: undefined,
    model: undefined,
    changes: undefined,
    ...unsent,
    sends: 0,
    estimatedTokens: undefined,
    isReceived: false,
    turn: undefined,
    streamed: false,
    status: 0,
    written: undefined,
    readUsage: undefined,
    upstreamRequestSent(backend) {
      tracker.backend = backend;
      progress.sentAt = monotonic();
      progress.queueMs = progress.sentAt - startedAt;
      progress.upstreamMs = undefined;
      progress.receivedBytes = undefined;
    },
    upstreamResponded() {
      progress.upstreamMs = monotonic() - progress.sentAt;
      progress.receivedBytes = 0;
    },
    headSent: () => void (progress.headSent = true),
    firstByte: () => void (progress.firstByteMs ??= monotonic() - startedAt),
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
          : (usage) => {
              earlier(usage);
              callback(usage);
            };
    },
    describe: (outcome, details) =>
      recordOf(request, tracker, progress, { outcome, durationMs: monotonic() - startedAt, details, cacheReporters }),
    finish(outcome, details) {
      if (finished) return;
      finished = true;
      finishedCallback(details?.usage);
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
  cacheReporters: Set<string>;
}

function recordOf(
  { id, clientAddress, method, path }: TrackedRequest,
  tracker: RequestTracker,
  { receivedBytes, queueMs, upstreamMs, firstByteMs, headSent }: Progress,
  { outcome, durationMs, details, cacheReporters }: End,
): RequestRecord {
  const { backend = "", lastTurn } = tracker;
  return {
    requestId: id,
    clientAddress,
    clientProgram: tracker.clientProgram,
    requestClass: tracker.requestClass,
    method,
    path,
    status: headSent ? 200 : tracker.status,
    outcome,
    keyId: tracker.keyId,
    modelAsked: tracker.model?.asked,
    modelSent: tracker.model?.sent,
    model: tracker.model?.name,
    code: details?.code,
    cause: details?.cause,
    receivedBytes,
    streamed: tracker.streamed,
    backend: tracker.backend,
    reason: tracker.reason,
    expectation: tracker.expectation,
    conversation: tracker.conversation,
    cacheLoss: lastTurn && findCacheLoss(lastTurn, backend, details?.usage, cacheReporters),
    changes: tracker.changes,
    queueMs,
    hasQueued: tracker.turn?.hasWaited ?? false,
    upstreamMs,
    firstByteMs,
    durationMs,
    usage: details?.usage,
    estimatedTokens: details?.estimatedTokens ?? tracker.estimatedTokens,
    isUncounted: details?.isUncounted ?? false,
    sends: tracker.sends > 1 ? tracker.sends : undefined,
  };
}

function runningOf(
  { id, clientAddress, method, path }: TrackedRequest,
  tracker: RequestTracker,
  { upstreamMs, receivedBytes }: Progress,
  ageMs: number,
): RunningRequest {
  const { keyId, model, backend, readUsage } = tracker;
  return {
    requestId: id,
    clientAddress,
    method,
    path,
    keyId,
    model: model?.name,
    backend,
    state: upstreamMs === undefined ? stateBefore(tracker) : "running",
    ageMs,
    receivedBytes: receivedBytes ?? 0,
    usage: readUsage?.(),
  };
}

/** Before the backend responds. */
function stateBefore({ isReceived, turn }: RequestTracker): RunningRequest["state"] {
  if (turn?.isWaiting === true) return "queued";
  return isReceived ? "waiting" : "receiving";
}
