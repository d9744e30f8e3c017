import { type ErrorBody, errorBody, errorKindOf } from "../errors.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";
import type { Meter } from "../stream/transform-stream.ts";
import type { Dialect, Voice } from "./dialect.ts";

interface ErrorFrame {
  event: Uint8Array<ArrayBuffer>;
  /** The stream ends cleanly behind it. */
  isFinal: boolean;
}

/** What ends a stream early. @param status of the response that the error would be without a stream */
export function errorFrame(voice: Voice, body: ErrorBody, status: number): ErrorFrame {
  // Agents send again what breaks off, and what an administrator ended is to stay ended.
  const isFinal = voice.endsCleanly === true || body.error.code === "ended_by_admin";
  return { event: new TextEncoder().encode(voice.error(body, status)), isFinal };
}

/** Bun 1.4.5 drops a frame that is enqueued right before a stream errors, unless it gets this long to write it. Remove when it sends it. */
export const lastFrameMs = 10;

export interface BrokenStream {
  /** Undefined if it is no event stream. */
  dialect: Dialect | undefined;
  requestId: string;
}

export async function endEarly(reason: AbortReason, meter: Meter, { dialect, requestId }: BrokenStream): Promise<void> {
  const { code } = reason;
  if (code === undefined) return meter.abort(reason).catch(() => {});
  const voice = meter.hasBegun ? dialect?.after : dialect?.before;
  const frame = voice && errorFrame(voice, errorBody(code, undefined, { requestId }), errorKindOf(code).status);
  await meter.fail(frame?.event);
  await Bun.sleep(lastFrameMs);
  await meter.abort(reason, frame?.isFinal).catch(() => {});
}
