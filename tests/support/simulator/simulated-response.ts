import type { Header } from "../http-parser.ts";
import type { Usage } from "../../../src/domain/usage.ts";

/** Separates two frames at the point at which a model would compute the next token. A paced stream waits here. */
export const tick: unique symbol = Symbol("tick");

/** One server-sent event including its empty line. */
export type Frame = string | typeof tick;

/** The response of a healthy backend, before the script applies any fault to it. */
export type SimulatedResponse = {
  status: number;
  headers: readonly Header[];
  /** What the simulator counted, whether or not the response reports it. */
  usage: Usage | undefined;
  /** Whether the response reports that usage to the client. */
  usageReported: boolean;
} & ({ body: string | Uint8Array; frames?: never } | { frames: Iterable<Frame>; body?: never });

export function jsonResponse(status: number, value: unknown, usage?: Usage, usageReported = true): SimulatedResponse {
  const headers: Header[] = [["content-type", "application/json"]];
  return { status, headers, body: JSON.stringify(value), usage, usageReported: usage !== undefined && usageReported };
}

export function streamResponse(frames: Iterable<Frame>, usage: Usage, usageReported: boolean): SimulatedResponse {
  const headers: Header[] = [["content-type", "text/event-stream; charset=utf-8"]];
  return { status: 200, headers, frames, usage, usageReported };
}

/** An event in the format of the messages and responses APIs. */
export function namedEvent(type: string, fields: Readonly<Record<string, unknown>>): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const types: Readonly<Record<number, [openAi: string, messages: string]>> = {
  400: ["BadRequestError", "invalid_request_error"],
  401: ["AuthenticationError", "authentication_error"],
  404: ["NotFoundError", "not_found_error"],
  429: ["RateLimitError", "rate_limit_error"],
  529: ["OverloadedError", "overloaded_error"],
};

/** An error in the format of the API that the path belongs to. */
export function errorResponse(path: string, status: number, message: string): SimulatedResponse {
  const [openAiType, messagesType] = types[status] ?? ["InternalServerError", "api_error"];
  if (path.startsWith("/v1/messages")) {
    return jsonResponse(status, { type: "error", error: { type: messagesType, message } });
  }
  return jsonResponse(status, { error: { message, type: openAiType, param: null, code: status } });
}
