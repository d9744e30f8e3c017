import { errorFrame } from "../errors.ts";
import { maxHeldEventBytes } from "../sse/events.ts";
import { decompressEventStream, isPlainEventStream } from "../usage/response-usage.ts";
import { lastFrameMs } from "./pump.ts";

const comment = new TextEncoder().encode(": keepalive\n\n");

export interface WaitingStream {
  path: string;
  keepaliveMs: number;
}

/**
 * An event stream that sends comments until the response to its request is known, and then that. The head has gone out by
 * then: a response that is not an event stream becomes an error frame and a broken connection.
 */
export function commentsUntil(response: Promise<Response>, { path, keepaliveMs }: WaitingStream): Response {
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let timer: Timer | undefined;
  let cancelled = false;
  const body = new ReadableStream<Uint8Array>(
    {
      async start(controller) {
        controller.enqueue(comment);
        timer = setInterval(() => controller.enqueue(comment), keepaliveMs);
        const found = await response.finally(() => clearInterval(timer));
        if (cancelled) return void found.body?.cancel().catch(() => {});
        const events = eventsOf(found);
        if (events !== undefined) return void (reader = events.getReader());
        controller.enqueue(await frameOf(found, path));
        await Bun.sleep(lastFrameMs);
        throw new Error("The response is not an event stream.");
      },
      async pull(controller) {
        const { done = true, value } = (await reader?.read()) ?? {};
        if (done) controller.close();
        else controller.enqueue(value);
      },
      async cancel(reason) {
        cancelled = true;
        clearInterval(timer);
        await reader?.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}

/** The error that the client would have got as a response, unless it is too long to be held as one event. */
async function frameOf({ body }: Response, path: string): Promise<Uint8Array> {
  const json = body === null ? undefined : await readShortJson(body).catch(() => undefined);
  if (typeof json !== "object" || json === null || !("error" in json)) return errorFrame(path, "upstream_unreachable");
  const name = path.startsWith("/v1/messages") ? "event: error\n" : "";
  return new TextEncoder().encode(`${name}data: ${JSON.stringify(json)}\n\n`);
}

/** @returns undefined for a longer text, which is read to its end all the same, because it counts */
async function readShortJson(body: ReadableStream<Uint8Array>): Promise<unknown> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of body) {
    length += piece.length;
    if (length <= maxHeldEventBytes) pieces.push(piece);
    else pieces.length = 0;
  }
  return length > maxHeldEventBytes ? undefined : JSON.parse(Buffer.concat(pieces).toString());
}

/** Plain, as the head said that went out: undefined if they are none, or cannot be decompressed. */
function eventsOf({ ok, body, headers }: Response): ReadableStream<Uint8Array> | undefined {
  if (!ok || body === null) return undefined;
  const kind = { contentType: headers.get("content-type"), contentEncoding: headers.get("content-encoding") };
  return isPlainEventStream(kind) ? body : decompressEventStream(body, kind);
}
