import type { KeyId, Usage, UsageEvent } from "../../domain.ts";
import { noUsage } from "../../domain.ts";
import type { WallClock } from "../../time/clock.ts";
import { errorFrame } from "../errors.ts";
import { clientResponseHeaders } from "../headers.ts";
import { findText } from "../request/body.ts";
import type { RequestTracker } from "../request-tracker.ts";
import type { UsageAdded } from "../rewrite/stream-options.ts";
import { abortReasonOf } from "../upstream/abort-reason.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { type BodyHeaders, createUsageReader, isPlainEventStream, readWholeUsage } from "../usage/reader.ts";
import { createStreamUsageFilter } from "../usage/stream-filter.ts";
import { createMeter } from "./meter.ts";
import { isShort, pump, readWhole } from "./pump.ts";

/** Commits one usage event; the client sees no end of the response before. Never rejects. */
export type RecordUsage = (event: UsageEvent) => Promise<void>;

export interface RespondDeps {
  record: RecordUsage;
  wall: WallClock;
  /** 0: never. */
  sseKeepaliveMs: number;
}

/** A response head that came from the upstream, and what is known of its request. */
export interface Responding {
  upstream: UpstreamResponse;
  tracker: RequestTracker;
  keyId: KeyId;
  method: string;
  path: string;
  /** What the rewriter added to the request for our own counting; the client must not see what it brings. */
  usageAdded: UsageAdded;
  /** Changes the text of a 200; undefined for responses that pass as they are. */
  edit: ((text: string) => string | undefined) | undefined;
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
 * @throws AbortReason if a response that is read whole breaks off: nothing of it has been sent yet
 */
export async function respond(responding: Responding, deps: RespondDeps): Promise<Response> {
  const { upstream, tracker, method } = responding;
  const { response } = upstream;
  tracker.status = response.status;
  const head = clientHead(response);
  const edit = response.status === 200 ? responding.edit : undefined;

  if (method === "HEAD" || response.body === null) return respondWithoutBody(responding, deps, head);
  if (edit !== undefined || (isShort(response) && !isPlainEventStream(head.kind))) {
    return respondWhole(responding, deps, head, edit);
  }
  return respondStreaming(responding, deps, head);
}

function clientHead(response: Response): Head {
  const headers = clientResponseHeaders(response.headers);
  return {
    init: { status: response.status, statusText: response.statusText, headers },
    headers,
    kind: { contentType: headers.get("content-type"), contentEncoding: headers.get("content-encoding") },
  };
}

async function respondWithoutBody(responding: Responding, deps: RespondDeps, { init }: Head): Promise<Response> {
  await settle(responding, deps, noUsage, undefined);
  return new Response(null, init);
}

/** Reads the body to its end first, which costs half of what a stream does. */
async function respondWhole(
  responding: Responding,
  deps: RespondDeps,
  { init, headers, kind }: Head,
  edit: Responding["edit"],
): Promise<Response> {
  const { upstream, tracker } = responding;
  let bytes: Uint8Array<ArrayBuffer>;
  try {
    bytes = await readWhole(upstream);
  } catch (error) {
    const reason = abortReasonOf(error, upstream.signal);
    await settle(responding, deps, noUsage, reason);
    throw reason;
  }
  tracker.firstByte();
  await settle(responding, deps, await readWholeUsage(bytes, kind), undefined);
  headers.delete("content-length");
  const body = edit?.(findText(bytes) ?? "") ?? bytes;
  return new Response(kind.contentType === null ? streamOf(body) : body, init);
}

/** Passes the body on as it comes. */
function respondStreaming(responding: Responding, deps: RespondDeps, { init, headers, kind }: Head): Response {
  const { upstream, tracker, path, usageAdded } = responding;
  // Nothing can be put into a compressed event stream, so it passes like any other body.
  const isEventStream = isPlainEventStream(kind);
  // Bun frames a streamed body itself.
  headers.delete("content-length");
  tracker.streamed = true;
  const meter = createMeter({
    reader: createUsageReader(kind),
    filter: isEventStream ? createStreamUsageFilter(usageAdded) : undefined,
    keepaliveMs: isEventStream ? deps.sseKeepaliveMs : 0,
    settle: (usage, cause) => settle(responding, deps, usage, cause),
  });
  void pump(upstream, meter, {
    errorFrame: isEventStream ? (code) => errorFrame(path, code) : undefined,
    onFirstByte: tracker.firstByte,
  });
  return new Response(meter.readable, init);
}

/** Bun adds a content type to a response that has none unless its body is a stream (1.4.5). Remove when it does not. */
function streamOf(body: string | Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(body));
      controller.close();
    },
  });
}

/**
 * Runs once for each response. It counts if the upstream's status is 2xx and the upstream did not break it off itself.
 * @param cause why it ended early; undefined if it is whole
 */
async function settle(
  { upstream, tracker, keyId }: Responding,
  { record, wall }: RespondDeps,
  usage: Usage,
  cause: unknown,
): Promise<void> {
  const reason = cause === undefined ? undefined : abortReasonOf(cause, upstream.signal);
  upstream.release();
  if (upstream.response.ok && (reason === undefined || reason.outcome === "client_left")) {
    await record({ keyId, closedAt: wall(), ...usage });
  }
  tracker.finish(reason?.outcome ?? "completed", { code: reason?.code, usage });
}
