// What goes back: a response without a body, a short one that is read whole, or a stream through the meter; model
// lists; and what a stream gets that waits for its backend (`while-waiting.ts`, `after-waiting.ts`).
//
// It keeps true: a response finishes once, however it ends, and its client sees no end before the count is recorded. A
// failure before the first byte is an error of ours; after it the stream is broken, so that no client takes half a
// response for a whole one, unless an administrator ended it or its client knows the last event as the end of a failed
// response (`broken-stream.ts`, `dialect.ts`). What costs and does not count is
// charged to limits of tokens by an estimate (`charge.ts`). It does not choose backends, and knows no storage: `record`
// is an argument.

import { failureResponse } from "../errors.ts";
import { clientResponseHeaders } from "../headers.ts";
import type { RequestTracker } from "../request-tracker.ts";
import type { Endpoint } from "../rewrite/endpoint.ts";
import { noUsageAdded, type UsageAdded } from "../rewrite/stream-options.ts";
import { type AbortReason, abortReasonOf, unreadableModelList } from "../upstream/abort-reason.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { type BodyHeaders, decompressBody, isEventStream, isPlainEventStream } from "../usage/body-kind.ts";
import type { UsageHabits } from "../usage/usage-habits.ts";
import { dialectOf } from "./dialect.ts";
import { Count, type CountDeps, type CountedResponse } from "./count.ts";
import { fullContextFilter } from "./full-context.ts";
import { createStreamUsageFilter } from "../stream/filter.ts";
import { Meter } from "../stream/transform-stream.ts";
import type { ModelListRequest } from "./model-list.ts";
import { isShort, pump, readWhole } from "./pump.ts";
import { type Usage, noUsage } from "../../domain/usage.ts";

/** A longer response is passed on without its edit, or refused if it must be edited. */
const maxEditedBytes = 4 * 1024 * 1024;

export interface RespondDeps extends CountDeps {
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

/** The client's response in the making. */
interface Head {
  init: ResponseInit;
  headers: Headers;
  /** How the body is to be read. */
  kind: BodyHeaders;
}

/**
 * Turns the upstream's response into the client's, metered.
 * @throws AbortReason if a response that is read whole breaks off, or must be edited and cannot be: nothing of it has been
 * sent yet
 */
export async function respond(responding: Responding, deps: RespondDeps): Promise<Response> {
  const { upstream, tracker, method } = responding;
  const { response } = upstream;
  tracker.status = response.status;
  const head = clientHead(response, deps);
  // No other success may show what the client must not see.
  const due = responding.modelList;
  const edit = response.status === 200 || (due?.mustEdit === true && response.ok) ? due : undefined;

  if (method === "HEAD" || response.body === null) return respondWithoutBody(responding, deps, head);
  const plain = responding.usageAdded === noUsageAdded ? undefined : decompressForFilter(responding, head);
  if (plain !== undefined) return respondStreaming({ ...responding, upstream: plain }, deps, head);
  if (edit !== undefined || (!isPlainEventStream(head.kind) && isShort(response))) {
    return respondWhole(responding, deps, head, edit);
  }
  return respondStreaming(responding, deps, head);
}

/**
 * A backend that compresses although the proxy requests no encoding. A stream is sent plain if something is to be removed
 * from it.
 */
function decompressForFilter({ upstream, usageAdded }: Responding, head: Head): UpstreamResponse | undefined {
  const { body } = upstream.response;
  if (body === null || !(usageAdded.includeUsage || usageAdded.continuousUsage)) return undefined;
  if (!isEventStream(head.kind) || isPlainEventStream(head.kind)) return undefined;
  const plain = decompressBody(body, head.kind);
  if (plain === undefined) return undefined;
  head.headers.delete("content-encoding");
  head.kind.contentEncoding = null;
  return { ...upstream, response: new Response(plain, upstream.response) };
}

function clientHead(response: Response, { sharesOrigin }: RespondDeps): Head {
  const headers = clientResponseHeaders(response.headers, sharesOrigin);
  return {
    init: { status: response.status, statusText: response.statusText, headers },
    headers,
    kind: { contentType: headers.get("content-type"), contentEncoding: headers.get("content-encoding") },
  };
}

async function respondWithoutBody(responding: Responding, deps: RespondDeps, { init }: Head): Promise<Response> {
  const {
    method,
    upstream: { response },
  } = responding;
  await finish(responding, new Count(responding, deps), { usage: noUsage, cause: undefined, hasSent: false });
  const announcesNothing = method === "HEAD" && !response.headers.has("content-length");
  return new Response(announcesNothing ? unreadStream() : null, init);
}

/** Reads the body to its end first, which costs half of what a stream does. */
async function respondWhole(
  responding: Responding,
  deps: RespondDeps,
  { init, headers, kind }: Head,
  edit: ModelListRequest | undefined,
): Promise<Response> {
  const { upstream, tracker } = responding;
  let read: Awaited<ReturnType<typeof readWhole>>;
  try {
    read = await readWhole(upstream, edit === undefined ? Infinity : maxEditedBytes);
  } catch (error) {
    await finish(responding, new Count(responding, deps), { usage: noUsage, cause: error, hasSent: false });
    throw abortReasonOf(error, upstream.signal);
  }
  const edited = read instanceof ReadableStream ? undefined : edit?.edit(read);
  if (edit?.mustEdit === true && edited === undefined) throw await refuseUnedited(responding, deps);
  if (read instanceof ReadableStream) {
    const rest = { ...upstream, response: new Response(read, upstream.response) };
    return respondStreaming({ ...responding, upstream: rest }, deps, { init, headers, kind });
  }
  tracker.firstByte();
  const count = new Count(responding, deps);
  await finish(responding, count, { usage: await count.readWhole(read, kind), cause: undefined, hasSent: false });
  headers.delete("content-length");
  const body = edited ?? read;
  return new Response(kind.contentType === null ? streamOf(body) : body, init);
}

async function refuseUnedited(responding: Responding, deps: RespondDeps): Promise<AbortReason> {
  const { upstream } = responding;
  upstream.abort(unreadableModelList());
  const reason = abortReasonOf(undefined, upstream.signal);
  await finish(responding, new Count(responding, deps), { usage: noUsage, cause: reason, hasSent: false });
  return reason;
}

/**
 * Passes the body on as it comes, once its first bytes are here: a response that fails before them is an error of ours.
 * Bun withholds the head until then in any case.
 */
async function respondStreaming(
  responding: Responding,
  deps: RespondDeps,
  { init, headers, kind }: Head,
): Promise<Response> {
  const { upstream, tracker, path, usageAdded, keepsUsage, onFullContext } = responding;
  // Nothing can be put into an event stream that is still compressed, so it passes like any other body.
  const isPlain = isPlainEventStream(kind);
  // Bun frames a streamed body itself.
  headers.delete("content-length");
  const count = new Count(responding, deps);
  const usageFilter = usageAdded === noUsageAdded ? undefined : createStreamUsageFilter(usageAdded, keepsUsage);
  const filter = isPlain ? (usageFilter ?? (onFullContext && fullContextFilter(onFullContext))) : undefined;
  const passage = count.createPassage(kind, filter);
  tracker.readUsage = () => passage.seen();
  tracker.content = count.progress;
  const dialect = dialectOf(path, tracker.clientProgram);
  const meter = new Meter({
    passage,
    heartbeats: dialect,
    keepaliveMs: isPlain ? deps.sseKeepaliveMs : 0,
    silentMs: responding.silentMs,
    commit: (usage) => count.commit(usage),
    finish: (usage, cause) => finish(responding, count, { usage, cause, hasSent: meter.hasSent }),
  });
  void pump(upstream, meter, {
    dialect: isPlain ? dialect : undefined,
    requestId: tracker.requestId,
    onFirstByte: count.progress === undefined ? tracker.firstByte : undefined,
  });
  await meter.started;
  return new Response(meter.readable, init);
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

interface End {
  usage: Usage;
  /** Why it ended early; undefined if it is whole. */
  cause: unknown;
  /** Whether the client got any of it. */
  hasSent: boolean;
}

/**
 * Runs once for each response. It counts if the upstream did not break it off itself; one whose terminal event was sent
 * is whole, however its connection ends.
 */
async function finish(responding: Responding, count: Count, { usage, cause, hasSent }: End): Promise<void> {
  const { upstream, tracker } = responding;
  const broken = cause === undefined || count.isCommitted ? undefined : abortReasonOf(cause, upstream.signal);
  upstream.release();
  const isUnsent = broken !== undefined && !hasSent;
  const reason = isUnsent ? broken : (count.fail(usage, broken === undefined) ?? broken);
  if (count.failure?.isSign === true) tracker.turn?.report({ kind: "failed", status: 500, retryAfterMs: undefined });
  const { learning } = responding;
  if (reason === undefined && tracker.streamed && learning !== undefined) {
    learning.habits.learnUnasked(learning.endpoint, count.shape?.isAlone === true);
  }
  // The client gets this status instead of the upstream's.
  if (isUnsent) tracker.status = failureResponse(broken.code).status;
  if (reason === undefined || isCounted(reason, hasSent)) await count.commit(usage, reason);
  else if (!isUnsent) await count.charge(usage);
  tracker.estimatedTokens = count.estimatedTokens;
  // A failure before the first byte becomes an error response, and that ends the request.
  if (isUnsent) return;
  tracker.finish(reason?.outcome ?? "completed", count.details(usage, reason));
}

/** What we cut ourselves counts if the client got any of it. Else it gets an error. */
const isCounted = (reason: AbortReason, hasSent: boolean): boolean =>
  reason.outcome === "client_left" || reason.outcome === "ended_by_admin" || (hasSent && isCutByUs(reason));

const isCutByUs = ({ outcome }: AbortReason): boolean => outcome === "shutdown" || outcome === "revoked";
