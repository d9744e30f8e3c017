import { type ErrorCode, errorKinds, isMessagesPath } from "../errors.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";
import type { Meter } from "./meter.ts";

/**
 * The event that ends a broken stream, in the dialect of its path: the Messages API names its events, the OpenAI APIs
 * have only an `error` member.
 */
export function errorFrame(path: string, code: ErrorCode, requestId: string): Uint8Array {
  const { type, message } = errorKinds[code];
  const body = isMessagesPath(path)
    ? { type: "error", error: { type, message }, request_id: requestId }
    : { error: { message, type, param: null, code } };
  return errorEvent(path, JSON.stringify(body));
}

/** @param json an error's body */
export function errorEvent(path: string, json: string): Uint8Array {
  return new TextEncoder().encode(`${isMessagesPath(path) ? "event: error\n" : ""}data: ${json}\n\n`);
}

/** Makes the event that ends one stream, if that is an event stream. */
export type ErrorFrame = (code: ErrorCode) => Uint8Array;

/** Bun 1.4.5 drops a frame that is enqueued right before a stream errors, unless it gets this long to write it. Remove when it sends it. */
export const lastFrameMs = 10;

/** Never ends cleanly: no client may take half a response for a whole one. */
export async function endBroken(reason: AbortReason, meter: Meter, frame: ErrorFrame | undefined): Promise<void> {
  if (reason.code !== undefined) {
    await meter.fail(frame?.(reason.code));
    await Bun.sleep(lastFrameMs);
  }
  await meter.abort(reason).catch(() => {});
}
