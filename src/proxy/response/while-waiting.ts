import type { Place } from "../../domain/admissions.ts";
import { dialectOf, errorFrame, lastFrameMs } from "./dialect.ts";
import type { ErrorBody } from "../errors.ts";
import { withoutByteOrderMark } from "../stream/meter.ts";

const utf8 = new TextEncoder();

/** The wait of a stream for its response. When it lasts too long, the client gets a head and heartbeats. */
export type StreamWait = ReturnType<typeof createStreamWait>;

export function createStreamWait(keepaliveMs: number, onTooLong: () => void) {
  let timer: Timer | undefined;
  let begunAt: number | undefined;
  let headSent = false;
  return {
    /** The request turned out to be a stream: its silence counts from now on. */
    begin(): void {
      begunAt = performance.now();
      timer = setTimeout(() => {
        headSent = true;
        onTooLong();
      }, keepaliveMs);
    },
    /** The backend's head is here, or none will come. `headSent`: the client has the head of an event stream already. */
    end() {
      clearTimeout(timer);
      return { headSent, silentMs: headSent || begunAt === undefined ? 0 : performance.now() - begunAt };
    },
  };
}

interface WaitingStream {
  path: string;
  clientProgram: string | undefined;
  keepaliveMs: number;
  /** Where the request stands in its line, if its client is to know that. */
  rank: Place["rank"];
}

/**
 * An event stream that sends heartbeats until the response to its request is known, and then that. The head has gone out by
 * then: an error becomes an event and a broken connection, or a clean end.
 * @param response an event stream, or an error of our own
 */
export function heartbeatsUntil(response: Promise<Response>, waiting: WaitingStream): Response {
  const { path, clientProgram, keepaliveMs, rank } = waiting;
  const { before: voice } = dialectOf(path, clientProgram);
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  let timer: Timer | undefined;
  let cancelled = false;
  let isOver = false;

  async function beat(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    const asked = rank();
    const found = asked && (await asked);
    if (isOver || cancelled) return;
    const place = found === undefined ? "" : `: waiting, ${found.position} of ${found.length}\n`;
    controller.enqueue(utf8.encode(place + voice.heartbeat));
  }

  const body = new ReadableStream<Uint8Array>(
    {
      async start(controller) {
        void beat(controller);
        timer = setInterval(() => void beat(controller), keepaliveMs);
        const found = await response.finally(() => {
          isOver = true;
          clearInterval(timer);
        });
        if (cancelled) return found.body?.cancel().catch(() => {});
        if (!found.ok || found.body === null) {
          const { event, isFinal } = errorFrame(voice, (await found.json()) as ErrorBody, found.status);
          controller.enqueue(event);
          if (isFinal) return controller.close();
          await Bun.sleep(lastFrameMs);
          throw new Error("The response is not an event stream.");
        }
        reader = found.body.getReader();
        const { value } = await reader.read();
        if (value === undefined) controller.close();
        else controller.enqueue(withoutByteOrderMark(value));
        return undefined;
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
