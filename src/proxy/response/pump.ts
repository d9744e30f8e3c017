import { eventLoopPortions } from "../json/read.ts";
import { abortReasonOf, clientLeft } from "../upstream/abort-reason.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { resumedStream } from "../upstream/resumed-stream.ts";
import { type BrokenStream, endEarly } from "./dialect.ts";
import type { Meter } from "../stream/meter.ts";

/** Responses up to this length are read whole and returned whole, at half the cost of a stream. */
const maxWholeBytes = 1024 * 1024;

/** Whether a response is known to be short, so that reading it whole does not delay its first byte. */
export function isShort(response: Response): boolean {
  const length = response.headers.get("content-length");
  return length !== null && Number(length) <= maxWholeBytes;
}

/**
 * @returns the whole body, or, if it is longer than `maxBytes`, a stream of it
 * @throws AbortReason if the response breaks off or times out, or the client leaves
 */
export async function readWhole(
  { response, readTimeout, signal, onBodyRead }: UpstreamResponse,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>> {
  if (response.body === null) return new Uint8Array();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const reader = response.body.getReader();
  try {
    for (;;) {
      readTimeout.beginWait();
      const { done, value } = await reader.read();
      readTimeout.endWait();
      onBodyRead(value);
      if (done) break;
      chunks.push(value);
      length += value.length;
      if (length > maxBytes) return resumedStream(chunks, reader);
    }
  } catch (error) {
    throw abortReasonOf(error, signal);
  }
  const [only] = chunks;
  return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
}

/** Like `readWhole`, for a caller that has nothing to do if it fails. */
export async function readOrRelease(upstream: UpstreamResponse, maxBytes: number): ReturnType<typeof readWhole> {
  try {
    return await readWhole(upstream, maxBytes);
  } catch (error) {
    upstream.release();
    throw error;
  }
}

/** A response that was read by `readWhole`, from its start. */
export const readAlready = (
  upstream: UpstreamResponse,
  body: Awaited<ReturnType<typeof readWhole>>,
): UpstreamResponse => ({
  ...upstream,
  response: new Response(body, upstream.response),
  onBodyRead: body instanceof Uint8Array ? () => {} : upstream.onBodyRead,
});

/** What came in one go of a stream is passed on in parts of this size: the runtime gives all that came since it was asked. */
const maxPartBytes = 32 * 1024;

const lineFeed = 0x0a;

/** A hostile backend may send what takes seconds to read, such as a million empty lines: others have their turns between. */
async function passInParts(chunk: Uint8Array, meter: Meter, writer: Writer): Promise<void> {
  const { now, portionMs, waitForTurn } = eventLoopPortions;
  let portionEnd = now() + portionMs;
  for (let at = 0; at < chunk.length;) {
    if (now() > portionEnd) {
      await waitForTurn();
      portionEnd = now() + portionMs;
    }
    const most = chunk.subarray(at, at + maxPartBytes);
    // Whole events cost less than parts of them.
    const part = most.subarray(0, most.lastIndexOf(lineFeed) + 1 || most.length);
    await (meter.isTaken() ? meter.push(part) : writer.write(part));
    at += part.length;
  }
}

type Writer = Pick<WritableStreamDefaultWriter<Uint8Array>, "write">;

interface PumpOptions extends BrokenStream {
  onFirstByte: (() => void) | undefined;
}

/**
 * Moves the response's bytes through the meter. Written out instead of piped, because the read timeout has to know which
 * side we wait for: `write` resolves when the client has taken the chunk before, `read` waits only for the upstream.
 */
export async function pump(upstream: UpstreamResponse, meter: Meter, options: PumpOptions): Promise<void> {
  const { response, readTimeout, signal, abort, onBodyRead } = upstream;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const writer = meter.writable.getWriter();
  /** The client left, or takes nothing for too long. */
  const leave = (): void => abort(clientLeft());
  // A client that leaves while the upstream is silent shows here, not at the next write.
  writer.closed.catch(leave);
  let { onFirstByte } = options;
  /** Which side we wait for, and so whose failure an error is. */
  let writing = false;
  const isStream = options.dialect !== undefined;
  // A client that takes nothing would keep a request alive that has been ended.
  const onEnded = (): void => {
    if (writing) void endEarly(abortReasonOf(undefined, signal), meter, options);
  };
  signal.addEventListener("abort", onEnded);
  try {
    for (;;) {
      readTimeout.beginWait();
      const { done, value } = await reader.read();
      onBodyRead(value);
      if (done) break;
      onFirstByte?.();
      onFirstByte = undefined;
      const isLong = isStream && value.length > maxPartBytes;
      const passed = isLong ? passInParts(value, meter, writer) : undefined;
      const taken = passed ?? (meter.isTaken() ? meter.push(value) : writer.write(value));
      if (taken === undefined) continue;
      writing = true;
      readTimeout.beginWait(leave);
      await taken;
      writing = false;
    }
    readTimeout.endWait();
    // From here on we wait for the count, not for the client.
    signal.removeEventListener("abort", onEnded);
    writing = true;
    await writer.close();
  } catch (error) {
    abort(writing ? clientLeft() : abortReasonOf(error, signal));
    await endEarly(abortReasonOf(error, signal), meter, options);
  }
}
