import { type ErrorBody, isMessagesPath } from "../errors.ts";
import { programOf } from "../rewrite/client-rules.ts";
import type { Heartbeats } from "../stream/meter.ts";
import { event } from "./message-events.ts";

/** What the clients of a path read of what is ours in their stream, until its first event has passed and from then on. */
export interface Dialect extends Heartbeats {
  /** The event that ends a stream early. @param status of the response that the error would be without a stream */
  errorBefore: (body: ErrorBody, status: number) => string;
  errorAfter: (body: ErrorBody, status: number) => string;
  /** A stream ends cleanly behind that event. Others break off, so that no client takes half an answer for a whole one. */
  endsCleanly: boolean;
}

const comment = ": keepalive\n\n";
const ping = event({ type: "ping" });
const keepalive = 'data: {"type":"keepalive"}\n\n';

const dataOfError = ({ error }: ErrorBody): string => `data: ${JSON.stringify({ error })}\n\n`;
const plain: Dialect = {
  begins: "",
  before: comment,
  after: comment,
  errorBefore: dataOfError,
  errorAfter: dataOfError,
  endsCleanly: false,
};
const eventOfError = (body: ErrorBody): string => event({ ...body });
const messages: Dialect = {
  ...plain,
  before: ping,
  after: ping,
  errorBefore: eventOfError,
  errorAfter: eventOfError,
};
/** Clients count the silence between data events. Helpers of OpenAI's SDKs throw if one comes before the first of the API. */
const responses: Dialect = {
  begins: "response.created",
  before: comment,
  after: keepalive,
  errorBefore: errorOfResponses,
  errorAfter: failedResponse,
  endsCleanly: false,
};
/** Codex (0.169) takes no comment for a sign of life, and sends again what ends without `response.failed` or breaks off behind it. */
const codex: Dialect = { ...responses, before: keepalive, errorBefore: failedResponse, endsCleanly: true };

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

/** By these, Codex decides whether to send the request again. */
const codes = ["context_length_exceeded", "invalid_prompt", "rate_limit_exceeded", "server_error"];

function codeOf({ code, type }: ErrorBody["error"], status: number): string {
  const own = codes.find((name) => name === code || name === type);
  if (own !== undefined) return own;
  if (status === 429) return "rate_limit_exceeded";
  return status < 500 ? "invalid_prompt" : "server_error";
}
