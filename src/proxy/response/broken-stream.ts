import { type ErrorCode, errorKinds, isMessagesPath } from "../errors.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";
import type { Meter } from "../stream/meter.ts";

/**
 * The event that ends a stream early, in the dialect of its path: the Messages API names its events, the OpenAI APIs
 * have only an `error` member.
 */
export function errorFrame(path: string, code: ErrorCode, requestId: string): Uint8Array {
  const { type, message, details } = errorKinds[code];
  const body = isMessagesPath(path)
    ? { type: "error", error: { type, message, details }, request_id: requestId }
    : { error: { message, type, param: null, code } };
  return errorEvent(path, JSON.stringify(body));
}

/** @param json an error's body */
export function errorEvent(path: string, json: string): Uint8Array {
  const data = path.startsWith("/v1/responses") && isFinalError(json) ? failedResponse(json) : json;
  return new TextEncoder().encode(`${isMessagesPath(path) ? "event: error\n" : ""}data: ${data}\n\n`);
}

/**
 * Whether a stream ends cleanly after this error: agents send again what breaks off, and what an administrator ended is to
 * stay ended.
 * @param json an error's body
 */
export const isFinalError = (json: string): boolean => json.includes('"code":"ended_by_admin"');

/** Codex (0.169) sends again what ends without this event, or with a code that it does not know; OpenAI's SDKs read `error`. */
function failedResponse(json: string): string {
  const body = JSON.parse(json) as { error: { message: string } };
  const error = { code: "invalid_prompt", message: body.error.message };
  return JSON.stringify({
    ...body,
    type: "response.failed",
    response: { object: "response", status: "failed", error },
  });
}

/** Makes the event that ends one stream, if that is an event stream. */
export type ErrorFrame = (code: ErrorCode) => Uint8Array;

/** Bun 1.4.5 drops a frame that is enqueued right before a stream errors, unless it gets this long to write it. Remove when it sends it. */
export const lastFrameMs = 10;

/** Breaks the stream, because no client may take half a response for a whole one, unless an administrator ended it. */
export async function endEarly(reason: AbortReason, meter: Meter, frame: ErrorFrame | undefined): Promise<void> {
  if (reason.code !== undefined) {
    await meter.fail(frame?.(reason.code));
    await Bun.sleep(lastFrameMs);
  }
  const isFinal = reason.code === "ended_by_admin" && frame !== undefined;
  await meter.abort(reason, isFinal).catch(() => {});
}
