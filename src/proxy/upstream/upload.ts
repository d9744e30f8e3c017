import type { ReadTimeout } from "./read-timeout.ts";

type Body = ReadableStream<Uint8Array<ArrayBuffer>>;

export interface Upload {
  body: Body;
  /** The answer has begun: the deadline is its alone. */
  releaseReadTimeout(): void;
}

/**
 * A client's body on its way to the upstream, in constant memory. The deadline rests while the client is waited for, and
 * runs while the upstream is: to take what there is, and in the end to answer.
 */
export function createUpload(body: Body, readTimeout: ReadTimeout): Upload {
  const reader = body.getReader();
  let ownsReadTimeout = true;
  const source: UnderlyingDefaultSource<Uint8Array<ArrayBuffer>> = {
    async pull(controller) {
      if (ownsReadTimeout) readTimeout.endWait();
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
      if (ownsReadTimeout) readTimeout.beginWait();
    },
    cancel: (reason) => reader.cancel(reason),
  };
  return {
    body: new ReadableStream(source, { highWaterMark: 0 }),
    releaseReadTimeout() {
      ownsReadTimeout = false;
    },
  };
}
