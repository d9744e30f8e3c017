import type { MonotonicClock } from "../time/clock.ts";
import type { ErrorCode } from "./errors.ts";
import { findCacheLoss, type LastTurn } from "../domain/cache-loss.ts";
import type { Outcome, RequestObserver, RequestRecord, RunningHandle, RunningRequest } from "../domain/requests.ts";
import { cachedTokensOf, type Usage, wholeInput } from "../domain/usage.ts";
import { type AbortReason, endedByAdmin } from "./upstream/abort-reason.ts";
import type { Wait } from "./waiting.ts";

export interface FinishDetails extends Partial<
  Pick<RequestRecord, "cause" | "message" | "usage" | "estimatedTokens" | "isUncounted">
> {
  code?: ErrorCode | undefined;
}

/** What is known of a request when it arrives. */
type TrackedRequest = Pick<
  RequestRecord,
  "requestId" | "method" | "path" | "clientAddress" | "clientProgram" | "requestClass" | "traceId"
>;

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
  /**
   * As far as it is known. Its backend is the one that it was sent to last; its status, which the client's response has, is
   * set before `finish`.
   */
  readonly record: RequestRecord;
  /** By the monotonic clock. */
  readonly startedAt: number;
  lastTurn: LastTurn | undefined;
  /** How often it was handed to a connection. */
  sends = 0;
  /** Its body was read, or is passed on as it comes. */
  isReceived = false;
  /** Its wait until it may be sent; undefined: it has none. */
  turn: Wait | undefined;
  /** The record that the ledger has, together with its counts; set before `finish`. */
  written: RequestRecord | undefined;
  /** Set for a stream whose first byte is its first content. */
  content: { isAsked: boolean } | undefined;
  /** Reads the usage seen so far. */
  readUsage: (() => Usage) | undefined;
  /** Run when the request has ended, in this order. */
  readonly onFinished: (() => void)[] = [];

  readonly #deps: TrackerDeps;
  /** By the monotonic clock. */
  #sentAt: number;
  /** When content was found to have come, by the monotonic clock. */
  #contentAt: number | undefined;
  /** None has come for several timeouts. */
  #isStalled = false;
  #headSent = false;
  #isFinished = false;
  #isEndRequested = false;
  #end: ((reason: AbortReason) => void) | undefined;
  readonly #endInFlight: () => void;

  constructor(deps: TrackerDeps, request: TrackedRequest) {
    this.#deps = deps;
    this.record = { ...nothingKnown, ...request };
    this.startedAt = deps.monotonic();
    this.#sentAt = this.startedAt;
    this.#endInFlight = deps.addInFlight({
      describe: () => this.#describeRunning(),
      end: () => {
        this.#isEndRequested = true;
        this.#end?.(endedByAdmin());
      },
    });
  }

  /** Called for each backend that it is sent to. */
  upstreamRequestSent(backend: string): void {
    this.#sentAt = this.#deps.monotonic();
    this.record.backend = backend;
    this.record.queueMs = this.#sentAt - this.startedAt;
    this.record.upstreamMs = undefined;
    this.record.receivedBytes = undefined;
  }

  /** The upstream's response head arrived. */
  upstreamResponded(): void {
    this.record.upstreamMs = this.#deps.monotonic() - this.#sentAt;
    this.record.receivedBytes = 0;
  }

  /** The client got the head of an event stream before the upstream responded: 200 is its status, whatever follows. */
  headSent(): void {
    this.#headSent = true;
  }

  /** The first byte of the body, of a stream its first content: the backend has read the prompt. */
  readonly firstByte = (): void => {
    if (this.record.firstByteMs === undefined) this.turn?.report({ kind: "begun" });
    this.record.firstByteMs ??= this.#deps.monotonic() - this.startedAt;
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
  readonly bodyReceived = (bytes: number): void => {
    this.record.receivedBytes = (this.record.receivedBytes ?? 0) + bytes;
  };

  /** Registers what ends the request for an administrator; called at once if that was asked for before. */
  readonly onEndRequested = (end: (reason: AbortReason) => void): void => {
    this.#end = end;
    if (this.#isEndRequested) end(endedByAdmin());
  };

  /** Gives back what its turn holds, and reports how it ended. Only the first call counts. */
  finish(outcome: Outcome, details: FinishDetails = {}): void {
    if (this.#isFinished) return;
    this.#isFinished = true;
    for (const callback of this.onFinished) callback();
    const { usage } = details;
    const tokens = usage === undefined ? 0 : wholeInput(usage);
    this.turn?.leave(usage === undefined || tokens === 0 ? undefined : { tokens, cached: cachedTokensOf(usage) });
    this.#endInFlight();
    const record = this.describe(outcome, details);
    if (this.written !== undefined) {
      // What everything that reports the request says of it, its row too.
      const { durationMs, receivedBytes } = this.written;
      const longerMs = record.durationMs - durationMs;
      const isOutdated = longerMs >= amendedMs && longerMs >= durationMs * amendedShare;
      Object.assign(record, { writtenMs: durationMs }, isOutdated ? undefined : { durationMs, receivedBytes });
    }
    this.#deps.observer.finished(record);
  }

  /** The request as it would end now. */
  describe(outcome: Outcome, details: FinishDetails = {}): RequestRecord {
    const { cacheReporters, monotonic } = this.#deps;
    const { record, lastTurn, sends } = this;
    const { backend = "", status } = record;
    return {
      ...record,
      outcome,
      code: details.code,
      cause: details.cause,
      message: details.message,
      usage: details.usage,
      isUncounted: details.isUncounted ?? false,
      status: this.#headSent ? 200 : status,
      cacheLoss: lastTurn && findCacheLoss(lastTurn, backend, details.usage, cacheReporters),
      waitedFor: this.turn?.waitedFor,
      durationMs: monotonic() - this.startedAt,
      estimatedTokens: details.estimatedTokens ?? record.estimatedTokens,
      sends: sends > 1 ? sends : undefined,
    };
  }

  #describeRunning(): RunningRequest {
    const { requestId, clientAddress, method, path, keyId, teamId, userId, priority, model, backend } = this.record;
    const now = this.#deps.monotonic();
    return {
      requestId,
      clientAddress,
      method,
      path,
      keyId,
      teamId,
      userId,
      priority,
      model,
      backend,
      state: this.record.upstreamMs === undefined ? this.#stateBefore() : "running",
      ageMs: now - this.startedAt,
      receivedBytes: this.record.receivedBytes ?? 0,
      usage: this.readUsage?.(),
      prefillTokens: this.turn?.prefillTokens,
      heartbeatsMs: this.#isStalled ? now - (this.#contentAt ?? now) : undefined,
    };
  }

  /** Before the backend responds. */
  #stateBefore(): RunningRequest["state"] {
    if (this.turn?.isWaiting === true) return this.turn.prefillTokens === undefined ? "queued" : "prefill";
    return this.isReceived ? "waiting" : "receiving";
  }
}

const nothingKnown = {
  status: 0,
  outcome: "completed",
  keyId: undefined,
  modelAsked: undefined,
  modelSent: undefined,
  model: undefined,
  code: undefined,
  cause: undefined,
  receivedBytes: undefined,
  streamed: false,
  upstreamMs: undefined,
  firstByteMs: undefined,
  durationMs: 0,
  usage: undefined,
} as const;

/** A row is written with the counts, and again only if the request lasted longer than before that by both of these. */
const amendedMs = 5;
const amendedShare = 0.01;
