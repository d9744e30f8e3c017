import type { MonotonicClock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";
import type { ChoiceReason, Expectation } from "../domain/backends.ts";
import { findCacheLoss, type LastTurn } from "../domain/cache-loss.ts";
import type { KeyId, TeamId, UserId } from "../domain/keys.ts";
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

/** @param usage what the response reported; undefined: nothing is known of it */
type FinishedCallback = (usage: CountedUsage | undefined) => void;

export interface FinishDetails {
  code?: ErrorCode | undefined;
  cause?: string | undefined;
  message?: string | undefined;
  usage?: CountedUsage;
  estimatedTokens?: number | undefined;
  isUncounted?: boolean;
}

/** What is known of a request when it arrives. */
interface TrackedRequest extends Pick<
  RequestRecord,
  "method" | "path" | "clientAddress" | "clientProgram" | "requestClass" | "traceId"
> {
  id: string;
}

export interface TrackerDeps {
  /** Called with each request. @returns called when it has ended */
  addInFlight: (request: RunningHandle) => () => void;
  observer: RequestObserver;
  monotonic: MonotonicClock;
  /** The backends that have ever reported cached input. */
  cacheReporters: Set<string>;
}

/** Collects what log and metrics need of one request while it runs, and reports it once the request has ended. */
export class RequestTracker {
  readonly requestId: string;
  /** By the monotonic clock. */
  readonly startedAt: number;
  readonly clientProgram: string | undefined;
  /** What it is for, as far as its client says or shows that. */
  requestClass: string | undefined;
  keyId: KeyId | undefined;
  /** The key's when it began; undefined: none. */
  teamId: TeamId | undefined;
  /** Undefined: nobody in particular. */
  userId: UserId | undefined;
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
  sends = 0;
  /** Charged to limits of tokens by an estimate; undefined: nothing. */
  estimatedTokens: number | undefined;
  /** Its body was read, or is passed on as it comes. */
  isReceived = false;
  /** Its wait until it may be sent; undefined: it has none. */
  turn: Wait | undefined;
  streamed = false;
  /** The client's response has it; set before `finish`. */
  status = 0;
  /** The record that the ledger has, together with its counts; set before `finish`. */
  written: RequestRecord | undefined;
  /** Set for a stream whose first byte is its first content. */
  content: { isAsked: boolean } | undefined;
  /** Reads the usage seen so far. */
  readUsage: (() => Usage) | undefined;

  readonly #deps: TrackerDeps;
  readonly #request: TrackedRequest;
  /** By the monotonic clock. */
  #sentAt: number;
  #queueMs: number | undefined;
  #upstreamMs: number | undefined;
  #firstByteMs: number | undefined;
  /** When content was found to have come, by the monotonic clock. */
  #contentAt: number | undefined;
  /** None has come for several timeouts. */
  #isStalled = false;
  #receivedBytes: number | undefined;
  #headSent = false;
  #isFinished = false;
  #isEndRequested = false;
  #end: (() => void) | undefined;
  readonly #finished: FinishedCallback[] = [];
  readonly #endInFlight: () => void;

  constructor(deps: TrackerDeps, request: TrackedRequest) {
    this.#deps = deps;
    this.#request = request;
    this.requestId = request.id;
    this.startedAt = deps.monotonic();
    this.#sentAt = this.startedAt;
    this.clientProgram = request.clientProgram;
    this.requestClass = request.requestClass;
    this.#endInFlight = deps.addInFlight({
      describe: () => this.#describeRunning(),
      end: () => {
        this.#isEndRequested = true;
        this.#end?.();
      },
    });
  }

  /** Called for each backend that it is sent to. */
  upstreamRequestSent(backend: string): void {
    this.backend = backend;
    this.#sentAt = this.#deps.monotonic();
    this.#queueMs = this.#sentAt - this.startedAt;
    this.#upstreamMs = undefined;
    this.#receivedBytes = undefined;
  }

  /** The upstream's response head arrived. */
  upstreamResponded(): void {
    this.#upstreamMs = this.#deps.monotonic() - this.#sentAt;
    this.#receivedBytes = 0;
  }

  /** The client got the head of an event stream before the upstream responded: 200 is its status, whatever follows. */
  headSent(): void {
    this.#headSent = true;
  }

  readonly firstByte = (): void => {
    this.#firstByteMs ??= this.#deps.monotonic() - this.startedAt;
    this.#isStalled = false;
  };

  /** Asks for content from now on. @returns whether none has come for `mostMs`, only when that is first found */
  lacksContent(mostMs: number): boolean {
    const { content } = this;
    if (content === undefined || this.#isStalled) return false;
    const now = this.#deps.monotonic();
    if (!content.isAsked || this.#contentAt === undefined) this.#contentAt = now;
    content.isAsked = true;
    return (this.#isStalled = now - this.#contentAt >= mostMs);
  }

  /** Part of the upstream's response body arrived. */
  bodyReceived(bytes: number): void {
    this.#receivedBytes = (this.#receivedBytes ?? 0) + bytes;
  }

  /** Registers what ends the request; called at once if its end was requested before. */
  onEndRequested(end: () => void): void {
    this.#end = end;
    if (this.#isEndRequested) end();
  }

  /** Registers what runs when the request has ended, in this order. */
  onFinished(callback: FinishedCallback): void {
    this.#finished.push(callback);
  }

  /** Reports how it ended. Only the first call counts. */
  finish(outcome: Outcome, details?: FinishDetails): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    for (const callback of this.#finished) callback(details?.usage);
    this.#endInFlight();
    this.#deps.observer.finished(finalRecord(this.describe(outcome, details), this.written));
  }

  /** The request as it would end now. */
  describe(outcome: Outcome, details?: FinishDetails): RequestRecord {
    const { cacheReporters, monotonic } = this.#deps;
    const { id, traceId, clientAddress, method, path } = this.#request;
    const { backend = "", lastTurn } = this;
    return {
      requestId: id,
      traceId,
      clientAddress,
      clientProgram: this.clientProgram,
      requestClass: this.requestClass,
      method,
      path,
      status: this.#headSent ? 200 : this.status,
      outcome,
      keyId: this.keyId,
      teamId: this.teamId,
      userId: this.userId,
      modelAsked: this.model?.asked,
      modelSent: this.model?.sent,
      model: this.model?.name,
      code: details?.code,
      cause: details?.cause,
      message: details?.message,
      receivedBytes: this.#receivedBytes,
      streamed: this.streamed,
      backend: this.backend,
      reason: this.reason,
      expectation: this.expectation,
      conversation: this.conversation,
      cacheLoss: lastTurn && findCacheLoss(lastTurn, backend, details?.usage, cacheReporters),
      changes: this.changes,
      queueMs: this.#queueMs,
      waitedFor: this.turn?.waitedFor,
      upstreamMs: this.#upstreamMs,
      firstByteMs: this.#firstByteMs,
      durationMs: monotonic() - this.startedAt,
      usage: details?.usage,
      estimatedTokens: details?.estimatedTokens ?? this.estimatedTokens,
      isUncounted: details?.isUncounted ?? false,
      sends: this.sends > 1 ? this.sends : undefined,
    };
  }

  #describeRunning(): RunningRequest {
    const { id, clientAddress, method, path } = this.#request;
    const { keyId, teamId, userId, model, backend, readUsage } = this;
    const now = this.#deps.monotonic();
    return {
      requestId: id,
      clientAddress,
      method,
      path,
      keyId,
      teamId,
      userId,
      model: model?.name,
      backend,
      state: this.#upstreamMs === undefined ? this.#stateBefore() : "running",
      ageMs: now - this.startedAt,
      receivedBytes: this.#receivedBytes ?? 0,
      usage: readUsage?.(),
      heartbeatsMs: this.#isStalled ? now - (this.#contentAt ?? now) : undefined,
    };
  }

  /** Before the backend responds. */
  #stateBefore(): RunningRequest["state"] {
    if (this.turn?.isWaiting === true) return "queued";
    return this.isReceived ? "waiting" : "receiving";
  }
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
