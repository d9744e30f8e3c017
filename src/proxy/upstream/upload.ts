import type { ReadTimeout } from "./read-timeout.ts";

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

export interface UploadOptions {
  readTimeout: ReadTimeout;
  /** Called with each pull. `fetch` pulls for the first time when it has a connection. */
  onPull: () => void;
}

export interface Upload {
  body: Body;
  /** Called when the response has begun: from then on only the response uses the read timeout. */
  releaseReadTimeout(): void;
}

/**
 * A client's body on its way to the upstream, in constant memory. The read timeout pauses while we wait for the client
 * and runs while we wait for the upstream: to take what there is, and in the end to respond.
 */
export function createUpload(body: Body, { readTimeout, onPull }: UploadOptions): Upload {
  const reader = body.getReader();
  let usesReadTimeout = true;
  const source: UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> = {
    async pull(controller) {
      onPull();
      if (usesReadTimeout) readTimeout.endWait();
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
      if (usesReadTimeout) readTimeout.beginWait();
    },
    cancel: (reason) => reader.cancel(reason),
  };
  return {
    body: new ReadableStream(source, { highWaterMark: 0 }),
    releaseReadTimeout() {
      usesReadTimeout = false;
    },
  };
}
