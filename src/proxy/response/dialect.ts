import { type ErrorBody, errorBody, errorKindOf } from "../errors.ts";
import { programOf } from "../../domain/requests.ts";
import type { Heartbeats, Meter } from "../stream/meter.ts";
import type { AbortReason } from "../upstream/abort-reason.ts";

/** How what is ours in a stream is said to its client. */
interface Voice {
  /** Sent in silence. */
  heartbeat: string;
  /** The event that ends the stream early. @param status of the response that the error would be without a stream */
  error: (body: ErrorBody, status: number) => string;
  /** The stream ends cleanly behind that event. Others break off, so that no client takes half a response for a whole one. */
  endsCleanly?: true;
}

/** The voices until the first event of the API has passed, and from then on. */
export interface Dialect extends Heartbeats {
  before: Voice;
  after: Voice;
}

/** An event of an API that names its events. */
export const event = (data: Readonly<Record<string, unknown>> & { type: string }): string =>
  `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;

const comment = ": keepalive\n\n";
const always = (voice: Voice): Dialect => ({ begins: "", before: voice, after: voice });
const failure: Voice = { heartbeat: 'data: {"type":"keepalive"}\n\n', error: failedResponse };

const plain = always({ heartbeat: comment, error: ({ error }) => `data: ${JSON.stringify({ error })}\n\n` });
const messages = always({ heartbeat: event({ type: "ping" }), error: (body) => event({ ...body }) });
/** Clients count the silence between data events. Helpers of OpenAI's SDKs throw if one comes before the first of the API. */
const responses: Dialect = {
  begins: "response.created",
  before: { heartbeat: comment, error: errorOfResponses },
  after: failure,
};
/**
 * Codex (0.169) takes no comment for a sign of life. `response.failed` is the end of a response to it, and its code says
 * whether to send the request again; if the connection breaks behind it, Codex forgets it and sends the request again.
 */
const codex = always({ ...failure, endsCleanly: true });

/** Whether clients of a path speak the Messages API. */
export const isMessagesPath = (path: string): boolean => path.startsWith("/v1/messages");

/** @param clientProgram how its User-Agent begins */
export function dialectOf(path: string, clientProgram?: string): Dialect {
  if (isMessagesPath(path)) return messages;
  if (!path.startsWith("/v1/responses")) return plain;
  return programOf(clientProgram) === "codex" ? codex : responses;
}

/** OpenAI's SDKs read `error`, Vercel's the rest, of which it requires the number. */
function errorOfResponses({ error }: ErrorBody, status: number): string {
  const { message } = error;
  return event({ type: "error", sequence_number: 0, code: codeOf(error, status), message, param: null, error });
}

function failedResponse({ error }: ErrorBody, status: number): string {
  const own = { code: codeOf(error, status), message: error.message };
  const response = { object: "response", status: "failed", error: own };
  return event({ type: "response.failed", sequence_number: 0, response, error });
}

const codes = ["context_length_exceeded", "invalid_prompt", "rate_limit_exceeded", "server_error"];

function codeOf({ code, type }: ErrorBody["error"], status: number): string {
  const own = codes.find((name) => name === code || name === type);
  if (own !== undefined) return own;
  if (status === 429) return "rate_limit_exceeded";
  return status < 500 ? "invalid_prompt" : "server_error";
}

interface ErrorFrame {
  event: Uint8Array<ArrayBuffer>;
  /** The stream ends cleanly behind it. */
  isFinal: boolean;
}

/** Agents send again what breaks off, and what an administrator or a revocation ended is to stay ended. */
const lastingCodes = new Set(["ended_by_admin", "key_revoked", "user_inactive"]);

/** What ends a stream early. @param status of the response that the error would be without a stream */
export function errorFrame(voice: Voice, body: ErrorBody, status: number): ErrorFrame {
  const isFinal = voice.endsCleanly === true || lastingCodes.has(String(body.error.code));
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
