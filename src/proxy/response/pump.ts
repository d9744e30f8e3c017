import { type AbortReason, abortReasonOf, clientLeft } from "../upstream/abort-reason.ts";
import type { ErrorCode } from "../errors.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import type { Meter } from "./meter.ts";

/** Answers up to this length are read whole and returned whole, at half the cost of a stream. */
const maxWholeBytes = 1024 * 1024;

/**
 * A frame enqueued right before a stream errors is lost unless the runtime gets to write it first (Bun 1.4.5).
 * Remove when the frame is sent.
 */
const lastWordsMs = 10;

/** Whether an answer is short and known to be, so that nobody waits for its first byte in vain. */
export function isShort(response: Response, maxBytes = maxWholeBytes): boolean {
  const length = response.headers.get("content-length");
  return length !== null && Number(length) <= maxBytes;
}

/** @throws CallEnded where the answer breaks off, times out or the client leaves */
export async function readWhole({ response, readTimeout, signal }: UpstreamResponse): Promise<Uint8Array<ArrayBuffer>> {
  if (response.body === null) return new Uint8Array();
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body.getReader();
  try {
    for (;;) {
      readTimeout.beginWait();
      const { done, value } = await reader.read();
      readTimeout.endWait();
      if (done) break;
      chunks.push(value);
    }
  } catch (error) {
    throw abortReasonOf(error, signal);
  }
  const [only] = chunks;
  return only !== undefined && chunks.length === 1 ? only : Buffer.concat(chunks);
}

export interface PumpOptions {
  /** The event that ends a broken event stream; absent for other bodies. */
  errorFrame: ((code: ErrorCode) => Uint8Array) | undefined;
  onFirstByte: () => void;
}

/**
 * Pumps the answer's bytes through the meter. Written out rather than piped, because a read deadline has to know which
 * side is waited for: `write` resolves when the client has taken the chunk, `read` waits for the upstream alone.
 */
export async function pump(answer: UpstreamResponse, meter: Meter, options: PumpOptions): Promise<void> {
  const { response, readTimeout, signal, abort } = answer;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const writer = meter.writable.getWriter();
  // A client that leaves while the upstream is silent shows here, not at the next write.
  writer.closed.catch(() => abort(clientLeft()));
  let onFirstByte: (() => void) | undefined = options.onFirstByte;
  let writing = false;
  try {
    for (;;) {
      readTimeout.beginWait();
      const { done, value } = await reader.read();
      readTimeout.endWait();
      if (done) break;
      onFirstByte?.();
      onFirstByte = undefined;
      writing = true;
      await writer.write(value);
      writing = false;
    }
    writing = true;
    await writer.close();
  } catch (error) {
    abort(writing ? clientLeft() : abortReasonOf(error, signal));
    await endBroken(abortReasonOf(error, signal), meter, writer, options.errorFrame);
  }
}

/** Never a clean end: no client may take half an answer for a whole one. */
async function endBroken(
  ended: AbortReason,
  meter: Meter,
  writer: WritableStreamDefaultWriter<Uint8Array>,
  errorFrame: PumpOptions["errorFrame"],
): Promise<void> {
  if (ended.code !== undefined) {
    meter.fail(errorFrame?.(ended.code));
    await Bun.sleep(lastWordsMs);
  }
  await writer.abort(ended).catch(() => {});
}
