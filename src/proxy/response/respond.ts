// What goes back: a response without a body, a short one that is read whole, or a stream through the meter; model
// lists; and what a stream gets that waits for its backend (`while-waiting.ts`, `after-waiting.ts`).
//
// It keeps true: a response finishes once, however it ends, and its client sees no end before the count is recorded. A
// failure before the first byte is an error of ours; after it the stream is broken, so that no client takes half a
// response for a whole one, unless an administrator ended it or its client knows the last event as the end of a failed
// response (`dialect.ts`). What costs and does not count is
// charged to limits of tokens by an estimate (`count.ts`). It does not choose backends, and knows no storage: `record`
// is an argument.

import { failureResponse } from "../errors.ts";
import { clientResponseHeaders } from "../headers.ts";
import type { RequestTracker } from "../request-tracker.ts";
import type { Endpoint } from "../rewrite/endpoint.ts";
import type { UsageAdded } from "../rewrite/requested-stream.ts";
import { type AbortReason, abortReasonOf, unreadableModelList } from "../upstream/abort-reason.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { type BodyKind, createDecodedStream, kindOf } from "../stream/body-kind.ts";
import type { UsageHabits } from "../stream/usage.ts";
import { dialectOf } from "./dialect.ts";
import { Count, type CountDeps, type CountedResponse } from "./count.ts";
import { fullContextFilter } from "./full-context.ts";
import { StreamUsageFilter } from "../stream/filter.ts";
import { Meter } from "../stream/meter.ts";
import type { ModelListRequest } from "./model-list.ts";
import { isShort, pump, readWhole } from "./pump.ts";
import { type Usage, noUsage } from "../../domain/usage.ts";

/** A longer response is passed on without its edit, or refused if it must be edited. */
const maxEditedBytes = 4 * 1024 * 1024;

interface RespondDeps extends CountDeps {
  /** 0: never. */
  sseKeepaliveMs: number;
  /** The console has the origin of `/v1`. */
  sharesOrigin: boolean;
}

/** A response head that came from the upstream, and what is known of its request. */
export interface Responding extends CountedResponse {
  upstream: UpstreamResponse;
  tracker: RequestTracker;
  /** What the rewriter added to the request for our own counting; the client must not see what it brings. */
  usageAdded: UsageAdded;
  /** It sends a frame of only usage to clients that do not ask for it, so that this one gets it too. */
  keepsUsage: boolean;
  /** Learns at the end of a whole stream whether it had such a frame; undefined if that tells nothing. */
  learning: { habits: UsageHabits; endpoint: Endpoint } | undefined;
  /** Edits the text of a 200; undefined for responses that pass as they are. */
  modelList: ModelListRequest | undefined;
  /** Called if the stream says that the context is full, and its client needs the code of that; undefined if it does not. */
  onFullContext: (() => void) | undefined;
  /** How long its client has waited already, if that counts for a keepalive. */
  silentMs: number;
}

/** Turns the upstream's response into the client's, metered. */
export class ClientResponse {
  readonly #responding: Responding;
  readonly #deps: RespondDeps;
  #upstream: UpstreamResponse;
  readonly #init: ResponseInit;
  readonly #headers: Headers;
  /** How the body is to be read. */
  #kind: BodyKind;
  readonly #count: Count;
  /** What the client must not see is taken out of a stream. */
  readonly #isFiltered: boolean;

  constructor(responding: Responding, deps: RespondDeps) {
    const { upstream, usageAdded } = responding;
    const { response } = upstream;
    this.#responding = responding;
    this.#deps = deps;
    this.#upstream = upstream;
    this.#isFiltered = usageAdded.includeUsage || usageAdded.continuousUsage;
    const headers = clientResponseHeaders(response.headers, deps.sharesOrigin);
    this.#init = { status: response.status, statusText: response.statusText, headers };
    this.#headers = headers;
    this.#kind = kindOf(headers.get("content-type"), headers.get("content-encoding"));
    this.#count = new Count(responding, deps);
  }

  /**
   * @throws AbortReason if a response that is read whole breaks off, or must be edited and cannot be: nothing of it has been
   * sent yet
   */
  async make(): Promise<Response> {
    const { tracker, method, modelList: due } = this.#responding;
    const { response } = this.#upstream;
    tracker.record.status = response.status;
    if (method === "HEAD" || response.body === null) return this.#withoutBody();
    const plain = this.#isFiltered ? this.#decompressForFilter(response.body) : undefined;
    if (plain !== undefined) return this.#stream(plain);
    // No other success may show what the client must not see.
    const edit = response.status === 200 || (due?.mustEdit === true && response.ok) ? due : undefined;
    if (edit !== undefined || (!this.#kind.isPlainEvents && isShort(response))) return this.#whole(edit);
    return this.#stream();
  }

  /**
   * A backend that compresses although the proxy requests no encoding. A stream is sent plain if something is to be removed
   * from it.
   */
  #decompressForFilter(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> | undefined {
    if (!this.#kind.isEventStream || this.#kind.isPlain) return undefined;
    const plain = createDecodedStream(body, this.#kind.encodings);
    if (plain === undefined) return undefined;
    this.#headers.delete("content-encoding");
    this.#kind = kindOf(this.#headers.get("content-type"), null);
    return plain;
  }

  async #withoutBody(): Promise<Response> {
    await this.finish(noUsage);
    const announcesNothing = this.#responding.method === "HEAD" && !this.#headers.has("content-length");
    return new Response(announcesNothing ? unreadStream() : null, this.#init);
  }

  /** Reads the body to its end first, which costs half of what a stream does. */
  async #whole(edit: ModelListRequest | undefined): Promise<Response> {
    let read: Awaited<ReturnType<typeof readWhole>>;
    try {
      read = await readWhole(this.#upstream, edit === undefined ? Infinity : maxEditedBytes);
    } catch (error) {
      await this.finish(noUsage, error);
      throw abortReasonOf(error, this.#upstream.signal);
    }
    const edited = read instanceof ReadableStream ? undefined : edit?.edit(read);
    if (edit?.mustEdit === true && edited === undefined) throw await this.#refuseUnedited();
    if (read instanceof ReadableStream) return this.#stream(read);
    this.#responding.tracker.firstByte();
    await this.finish(await this.#count.readWhole(read, this.#kind));
    this.#headers.delete("content-length");
    const body = edited ?? read;
    return new Response(this.#headers.has("content-type") ? body : streamOf(body), this.#init);
  }

  async #refuseUnedited(): Promise<AbortReason> {
    this.#upstream.abort(unreadableModelList());
    const reason = abortReasonOf(undefined, this.#upstream.signal);
    await this.finish(noUsage, reason);
    return reason;
  }

  /**
   * Passes the body on as it comes, once its first bytes are here: a response that fails before them is an error of ours.
   * Bun withholds the head until then in any case.
   * @param body in place of the upstream's
   */
  async #stream(body?: ReadableStream<Uint8Array>): Promise<Response> {
    const { tracker, path, usageAdded, keepsUsage, onFullContext, silentMs } = this.#responding;
    const count = this.#count;
    const response = body && new Response(body, this.#upstream.response);
    if (response !== undefined) this.#upstream = { ...this.#upstream, response };
    // Nothing can be put into an event stream that is still compressed, so it passes like any other body.
    const isPlain = this.#kind.isPlainEvents;
    // Bun frames a streamed body itself.
    this.#headers.delete("content-length");
    const marks = isPlain && onFullContext ? fullContextFilter(onFullContext) : undefined;
    const filter = isPlain && this.#isFiltered ? new StreamUsageFilter(usageAdded, keepsUsage) : marks;
    const passage = count.createPassage(this.#kind, filter);
    tracker.readUsage = () => passage.seen();
    tracker.content = count.progress;
    const dialect = dialectOf(path, tracker.record.clientProgram);
    const meter = new Meter({
      passage,
      heartbeats: dialect,
      keepaliveMs: isPlain ? this.#deps.sseKeepaliveMs : 0,
      silentMs,
      count,
      response: this,
    });
    void pump(this.#upstream, meter, {
      dialect: isPlain ? dialect : undefined,
      requestId: tracker.record.requestId,
      onFirstByte: count.progress === undefined ? tracker.firstByte : undefined,
    });
    await meter.started;
    return new Response(meter.readable, this.#init);
  }

  /**
   * Runs once for each response. It counts if the upstream did not break it off itself; one whose terminal event was sent
   * is whole, however its connection ends.
   * @param cause why it ended early; undefined if it is whole. @param hasSent the client got some of it
   */
  async finish(usage: Usage, cause?: unknown, hasSent = false): Promise<void> {
    const { tracker, learning } = this.#responding;
    const [upstream, count] = [this.#upstream, this.#count];
    const broken =
      cause === undefined || count.committed !== undefined ? undefined : abortReasonOf(cause, upstream.signal);
    upstream.release();
    const isUnsent = broken !== undefined && !hasSent;
    const reason = isUnsent ? broken : (count.fail(usage, broken === undefined) ?? broken);
    if (count.failure?.isSign === true) tracker.turn?.report({ kind: "failed", status: 500, retryAfterMs: undefined });
    if (reason === undefined && tracker.record.streamed && learning !== undefined) {
      learning.habits.learnUnasked(learning.endpoint, count.shape?.isAlone === true);
    }
    // The client gets this status instead of the upstream's.
    if (isUnsent) tracker.record.status = failureResponse(broken.code).status;
    if (reason === undefined || isCounted(reason, hasSent)) await count.commit(usage, reason);
    else if (!isUnsent) await count.charge(usage);
    tracker.record.estimatedTokens = count.estimatedTokens;
    // A failure before the first byte becomes an error response, and that ends the request.
    if (isUnsent) return;
    tracker.finish(reason?.outcome ?? "completed", count.details(usage, reason));
  }
}

/** Bun adds `content-length: 0` to a HEAD's response unless its body is an open stream (1.4.5). Remove when it does not. */
const unreadStream = (): ReadableStream<Uint8Array> =>
  new ReadableStream({ pull: (controller) => controller.close() }, { highWaterMark: 0 });

/** Bun adds a content type to a response that has none unless its body is a stream (1.4.5). Remove when it does not. */
function streamOf(body: string | Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(body));
      controller.close();
    },
  });
}

/** What we cut ourselves counts if the client got any of it. Else it gets an error. */
const isCounted = (reason: AbortReason, hasSent: boolean): boolean =>
  reason.outcome === "client_left" || reason.outcome === "ended_by_admin" || (hasSent && isCutByUs(reason));

const isCutByUs = ({ outcome }: AbortReason): boolean => outcome === "shutdown" || outcome === "revoked";
