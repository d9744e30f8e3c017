import { type ErrorCode, errorBody, errorKinds } from "../errors.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";
import type { Meter } from "../stream/meter.ts";
import type { Dialect } from "./dialect.ts";

/** The event that ends one stream. */
export interface ErrorFrame {
  event: Uint8Array;
  /** The stream ends cleanly behind it. */
  isFinal: boolean;
}

/** @param hasBegun the first event of its API has passed */
export type MakeErrorFrame = (code: ErrorCode, hasBegun: boolean) => ErrorFrame;

export const errorFrames =
  (dialect: Dialect, requestId: string): MakeErrorFrame =>
  (code, hasBegun) => {
    const error = hasBegun ? dialect.errorAfter : dialect.errorBefore;
    const text = error(errorBody(code, undefined, { requestId }), errorKinds[code].status);
    return { event: new TextEncoder().encode(text), isFinal: dialect.endsCleanly || code === "ended_by_admin" };
  };

/** Bun 1.4.5 drops a frame that is enqueued right before a stream errors, unless it gets this long to write it. Remove when it sends it. */
export const lastFrameMs = 10;

/** @param make undefined if it is no event stream */
export async function endEarly(reason: AbortReason, meter: Meter, make: MakeErrorFrame | undefined): Promise<void> {
  const frame = reason.code && make?.(reason.code, meter.hasBegun());
  if (reason.code !== undefined) {
    await meter.fail(frame?.event);
    await Bun.sleep(lastFrameMs);
  }
  await meter.abort(reason, frame?.isFinal).catch(() => {});
}
