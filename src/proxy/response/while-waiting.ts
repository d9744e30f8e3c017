import { errorFrame } from "../errors.ts";
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
        const { body: rest, ok, headers: found } = await response.finally(() => clearInterval(timer));
        if (cancelled) return void rest?.cancel().catch(() => {});
        if (ok && rest !== null && isEventStream(found)) return void (reader = rest.getReader());
        controller.enqueue(await frameOf(await response, path));
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

/** The error that the client would have got as a response. */
async function frameOf(response: Response, path: string): Promise<Uint8Array> {
  const json: unknown = await response.json().catch(() => undefined);
  if (typeof json !== "object" || json === null || !("error" in json)) return errorFrame(path, "upstream_unreachable");
  const name = path.startsWith("/v1/messages") ? "event: error\n" : "";
  return new TextEncoder().encode(`${name}data: ${JSON.stringify(json)}\n\n`);
}

const isEventStream = (headers: Headers): boolean =>
  /^\s*text\/event-stream\b/i.test(headers.get("content-type") ?? "");
