import type { WallClock } from "../../time/clock.ts";
import { findText } from "../request/body.ts";
import { type AbortReason, abortReasonOf } from "../upstream/abort-reason.ts";
import { errorFrame } from "../errors.ts";
import type { RequestTracker } from "../request-tracker.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { clientResponseHeaders } from "../headers.ts";
import { createMeter } from "./meter.ts";
import { isShort, readWhole, pump } from "./pump.ts";
import { createStreamUsageFilter } from "../usage/stream-filter.ts";
import type { UsageAdded } from "../rewrite/stream-options.ts";
import { noUsage, type Usage } from "../../domain.ts";
import { createUsageReader, isPlainEventStream, readWholeUsage } from "../usage/response-usage.ts";

export interface RespondDeps {
  /** Commits one counted response; the client sees no end before. Never rejects. */
  record: (receipt: Usage & { keyId: number; closedAt: number }) => Promise<void>;
  clock: WallClock;
  /** 0: never. */
  sseKeepaliveMs: number;
}

export interface Delivery {
  answer: UpstreamResponse;
  tracker: RequestTracker;
  keyId: number;
  method: string;
  path: string;
  /** What was added to the request for our own counting, to be taken out of the answer again. */
  usageAdded: UsageAdded;
  /** Changes the text of a 200; undefined for the answers that are the backend's alone. */
  edit: ((text: string) => string | undefined) | undefined;
}

/**
 * Turns the upstream's answer into the client's, counted.
 * @throws CallEnded where a short answer breaks off: nothing of it has been sent yet
 */
export async function respond(delivery: Delivery, deps: RespondDeps): Promise<Response> {
  const { answer, tracker, method } = delivery;
  const { response } = answer;
  const headers = clientResponseHeaders(response.headers);
  const init = { status: response.status, statusText: response.statusText, headers };
  tracker.status = response.status;

  if (method === "HEAD" || response.body === null) {
    await settle(delivery, deps, noUsage, undefined);
    return new Response(null, init);
  }
  const kind = { contentType: headers.get("content-type"), contentEncoding: headers.get("content-encoding") };
  // Nothing can be put into a compressed one, so it is relayed like any other body.
  const isEventStream = isPlainEventStream(kind);
  const edit = response.status === 200 ? delivery.edit : undefined;
  if (edit !== undefined || (!isEventStream && isShort(response))) {
    let bytes: Uint8Array<ArrayBuffer>;
    try {
      bytes = await readWhole(answer);
    } catch (error) {
      const ended = abortReasonOf(error, answer.signal);
      await settle(delivery, deps, noUsage, ended);
      throw ended;
    }
    tracker.firstByte();
    await settle(delivery, deps, await readWholeUsage(bytes, kind), undefined);
    headers.delete("content-length");
    const body = edit?.(findText(bytes) ?? "") ?? bytes;
    return new Response(kind.contentType === null ? streamOf(body) : body, init);
  }
  // Bun frames a streamed body itself.
  headers.delete("content-length");
  tracker.streamed = true;
  const meter = createMeter({
    reader: createUsageReader(kind),
    filter: isEventStream ? createStreamUsageFilter(delivery.usageAdded) : undefined,
    keepaliveMs: isEventStream ? deps.sseKeepaliveMs : 0,
    settle: (usage, cause) => settle(delivery, deps, usage, cause),
  });
  void pump(answer, meter, {
    errorFrame: isEventStream ? (code) => errorFrame(delivery.path, code) : undefined,
    onFirstByte: tracker.firstByte,
  });
  return new Response(meter.readable, init);
}

/** Bun gives an answer without a content type one of its own, save where its body is a stream (1.4.5). */
function streamOf(body: string | Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from(body));
      controller.close();
    },
  });
}

/** Once for each answer: an ended one counts when the upstream said 2xx and did not break it off itself. */
async function settle(
  { answer, tracker, keyId }: Delivery,
  { record, clock }: RespondDeps,
  usage: Usage,
  cause: unknown,
): Promise<void> {
  const ended: AbortReason | undefined = cause === undefined ? undefined : abortReasonOf(cause, answer.signal);
  answer.release();
  if (answer.response.ok && (ended === undefined || ended.outcome === "client_left")) {
    await record({ keyId, closedAt: clock(), ...usage });
  }
  tracker.finish(ended?.outcome ?? "completed", { code: ended?.code, usage });
}
