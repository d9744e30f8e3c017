import { parseJson } from "../../domain/json.ts";
import { isBlank } from "../json/bytes.ts";
import { abortReasonOf, unexpectedResponse } from "../upstream/abort-reason.ts";
import type { UpstreamResponse } from "../upstream/forward.ts";
import { beginsEvents, maxHeldEventBytes } from "../stream/events.ts";
import { resumedStream } from "../upstream/resumed-stream.ts";
import { createDecodedStream, kindOf, mediaTypeOf } from "../stream/body-kind.ts";
import { isObject } from "../stream/usage.ts";
import { event, isMessagesPath } from "./dialect.ts";
import { readWhole } from "./pump.ts";

/**
 * The response to a stream whose client has the head of an event stream already: a plain event stream, made of JSON if the
 * backend does not stream.
 * @throws AbortReason if it is neither; it does not count then
 */
export async function asEventStream(upstream: UpstreamResponse, path: string): Promise<UpstreamResponse> {
  let reason: unknown;
  try {
    const events = await findEvents(upstream, isMessagesPath(path) ? eventsOfMessageJson : eventsOfJson);
    if (events !== undefined) return { ...upstream, response: new Response(events, plainHead(upstream.response)) };
    reason = await readRefusal(upstream);
  } catch (error) {
    reason = error;
  }
  const found = abortReasonOf(reason, upstream.signal);
  upstream.abort(found);
  upstream.release();
  throw found;
}

function plainHead({ headers: given }: Response): ResponseInit {
  const headers = new Headers(given);
  for (const name of ["content-encoding", "content-length"]) headers.delete(name);
  headers.set("content-type", "text/event-stream");
  return { headers };
}

type EventsOf = (json: ReadableStream<Uint8Array> | undefined) => ReadableStream<Uint8Array> | undefined;

async function findEvents(
  upstream: UpstreamResponse,
  eventsOf: EventsOf,
): Promise<ReadableStream<Uint8Array> | undefined> {
  const { ok, headers, body } = upstream.response;
  if (!ok || body === null) return undefined;
  const { isEventStream, isJson, isSniffed, isPlain, encodings } = kindOf(
    headers.get("content-type"),
    headers.get("content-encoding"),
  );
  if (isEventStream) return createDecodedStream(body, encodings);
  if (isJson) return eventsOf(createDecodedStream(body, encodings));
  return isSniffed && isPlain ? sniffEvents(upstream, body.getReader(), eventsOf) : undefined;
}

/** Small servers set no type, or `text/plain`. */
async function sniffEvents(
  { readTimeout }: UpstreamResponse,
  reader: ReadableStreamDefaultReader<Uint8Array>,
  eventsOf: EventsOf,
): Promise<ReadableStream<Uint8Array> | undefined> {
  readTimeout.beginWait();
  const { value: first = new Uint8Array() } = await reader.read();
  readTimeout.endWait();
  const body = resumedStream([first], reader);
  if (beginsEvents(first) !== false) return body;
  const start = first.find((byte) => !isBlank(byte));
  return start === openBrace ? eventsOf(body) : undefined;
}

const openBrace = 0x7b;
const space = 0x20;
const utf8 = new TextEncoder();

/** One event, and the end that clients wait for. A line end in the JSON would end the event's data, and means as much as a space. */
const eventsOfJson: EventsOf = (json) => {
  let prefix = "data: ";
  return json?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        if (prefix !== "" && chunk.every(isBlank)) return;
        if (prefix !== "") controller.enqueue(utf8.encode(prefix));
        prefix = "";
        controller.enqueue(chunk.map((byte) => (byte === 0x0a || byte === 0x0d ? space : byte)));
      },
      flush(controller) {
        if (prefix === "") controller.enqueue(utf8.encode(doneEvent));
        else controller.error(emptyResponse());
      },
    }),
  );
};

const emptyResponse = () => unexpectedResponse(200, "");
const doneEvent = "\n\ndata: [DONE]\n\n";

/** Far more than a model writes in one message. */
const maxMessageBytes = 16 * 1024 * 1024;

const eventsOfMessageJson: EventsOf = (json) => {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return json?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        size += chunk.length;
        if (size > maxMessageBytes) controller.error(new Error("The message is too large"));
        chunks.push(chunk);
      },
      flush(controller) {
        const text = Buffer.concat(chunks).toString();
        if (text.trim() === "") return controller.error(emptyResponse());
        controller.enqueue(
          utf8.encode(eventsOfMessage(text) ?? `data: ${text.replaceAll(/[\r\n]/g, " ")}${doneEvent}`),
        );
      },
    }),
  );
};

/** Why there is no stream, in the backend's own words if it has some. */
async function readRefusal(upstream: UpstreamResponse): Promise<unknown> {
  const { status, headers } = upstream.response;
  const { isJson } = mediaTypeOf(headers.get("content-type"));
  const body = isJson ? await readWhole(upstream, maxHeldEventBytes) : undefined;
  const { message, ...members } = body instanceof Uint8Array ? errorIn(body) : {};
  return unexpectedResponse(status, typeof message === "string" ? message : "", members);
}

/** The backend's `error`; some have its members at the top level. */
function errorIn(body: Uint8Array): Partial<Record<"message" | "type" | "code", string | number>> {
  const json = parseJson(Buffer.from(body).toString());
  const error = isObject(json) && isObject(json.error) ? json.error : json;
  if (!isObject(error)) return {};
  const members = ["message", "type", "code"].map((name) => [name, error[name]] as const);
  return Object.fromEntries(members.filter(([, value]) => typeof value === "string" || typeof value === "number"));
}

type Members = Readonly<Record<string, unknown>>;

/**
 * The events that a stream of `/v1/messages` would have had, made of a whole message: its clients know no other.
 * @returns undefined if it is not a message
 */
export function eventsOfMessage(json: string): string | undefined {
  const message = parseJson(json);
  if (!isObject(message) || message["type"] !== "message" || !Array.isArray(message["content"])) return undefined;
  const { content, stop_reason, stop_sequence = null, usage = {}, ...head } = message;
  const opening = { ...head, content: [], stop_reason: null, stop_sequence: null, usage };
  return [
    event({ type: "message_start", message: opening }),
    ...(content as unknown[]).flatMap((block, index) => eventsOfBlock(isObject(block) ? block : {}, index)),
    event({ type: "message_delta", delta: { stop_reason, stop_sequence }, usage }),
    event({ type: "message_stop" }),
  ].join("");
}

function eventsOfBlock(block: Members, index: number): string[] {
  const { start, deltas } = splitBlock(block);
  return [
    event({ type: "content_block_start", index, content_block: start }),
    ...deltas.map((delta) => event({ type: "content_block_delta", index, delta })),
    event({ type: "content_block_stop", index }),
  ];
}

/** What a block begins as, and what is added to it. Clients take a block of another kind as it begins. */
function splitBlock(block: Members): { start: Members; deltas: Members[] } {
  const { type, text, thinking, signature, input } = block;
  if (type === "text") return { start: { ...block, text: "" }, deltas: [{ type: "text_delta", text }] };
  if (type === "thinking") {
    const signed = signature === undefined ? [] : [{ type: "signature_delta", signature }];
    return {
      start: { ...block, thinking: "", signature: "" },
      deltas: [{ type: "thinking_delta", thinking }, ...signed],
    };
  }
  if (typeof type === "string" && type.endsWith("tool_use"))
    return {
      start: { ...block, input: {} },
      deltas: [{ type: "input_json_delta", partial_json: JSON.stringify(input ?? {}) }],
    };
  return { start: block, deltas: [] };
}
