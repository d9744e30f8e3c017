import { noProgressMs } from "./abort-reason.ts";
import type { ReadTimeout, StartReadTimeout } from "./read-timeout.ts";

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

/**
 * A client's body on its way to the upstream, in constant memory. The read timeout pauses while we wait for the client,
 * which has a limit of its own, and runs while we wait for the upstream: to take what there is, and in the end to respond.
 */
export function createUpload(
  body: Body,
  options: {
    readTimeout: ReadTimeout;
    /** Called with each pull. `fetch` pulls for the first time when it has a connection. */
    onPull: () => void;
    startReadTimeout: StartReadTimeout;
    /** Called when the client has sent nothing for too long. */
    onStalled: () => void;
  },
): {
  body: Body;
  /** Called when the response has begun: from then on only the response uses the read timeout. */
  releaseReadTimeout(): void;
  /** Ends the wait for the client for good. */
  clear(): void;
  /** Lets go of a body of which nothing was read, so that it can be sent to another upstream. */
  giveBack(): void;
} {
  const { readTimeout, onPull, startReadTimeout, onStalled } = options;
  const reader = body.getReader();
  const clientTimeout = startReadTimeout(noProgressMs, onStalled);
  let usesReadTimeout = true;
  let isRead = false;
  const giveBack = (): void => {
    if (!isRead) reader.releaseLock();
  };
  const source: UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> = {
    async pull(controller) {
      isRead = true;
      onPull();
      if (usesReadTimeout) readTimeout.endWait();
      clientTimeout.beginWait();
      const { done, value } = await reader.read();
      clientTimeout.endWait();
      if (done) controller.close();
      else controller.enqueue(value);
      if (usesReadTimeout) readTimeout.beginWait();
    },
    cancel: (reason) => (isRead ? reader.cancel(reason) : giveBack()),
  };
  return {
    body: new ReadableStream(source, { highWaterMark: 0 }),
    releaseReadTimeout() {
      usesReadTimeout = false;
    },
    clear: clientTimeout.clear,
    giveBack,
  };
}
