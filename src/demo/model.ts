// What the model of the demo responds in each API: prose, whole or as events. The tests have a simulator of their own.

import { randomUUID } from "node:crypto";
import type { Usage } from "../domain/usage.ts";

type JsonObject = Readonly<Record<string, unknown>>;

/** What the model generates for one request. */
type Reply = ReturnType<typeof replyTo>;

/** The parts of a stream, with an event for each token in between. */
interface Events {
  opening: string;
  token: (text: string) => string;
  closing: string;
}

interface Dialect {
  whole: (reply: Reply) => object;
  events?: (reply: Reply) => Events;
}

export interface StreamedResponse {
  status: number;
  events: Events;
  texts: readonly string[];
  usage: Usage;
}

type ModelResponse = StreamedResponse | { status: number; body: object; usage?: Usage };

/** @param usage what to report, if it differs from what is counted */
export function respond(
  { method, path, body }: { method: string; path: string; body: unknown },
  usage: Usage | undefined,
  models: readonly string[],
): ModelResponse {
  if (path === "/v1/models") return { status: 200, body: { object: "list", data: models.map(modelEntry) } };
  const listed = models.find((name) => path === `/v1/models/${name}`);
  if (listed !== undefined) return { status: 200, body: modelEntry(listed) };
  const dialect = dialects[path];
  if (dialect === undefined || method !== "POST") return errorOf(path, 404, "Not Found");
  if (!isObject(body)) return errorOf(path, 400, "The body is not a JSON object");
  const model = models.find((name) => name === body["model"]);
  if (model === undefined) return errorOf(path, 404, `The model ${JSON.stringify(body["model"])} does not exist.`);
  const reply = replyTo(body, model, usage);
  if (body["stream"] !== true || dialect.events === undefined)
    return { status: 200, body: dialect.whole(reply), usage: reply.usage };
  return { status: 200, events: dialect.events(reply), texts: reply.texts, usage: reply.usage };
}

export function errorOf(path: string, status: number, message: string): ModelResponse {
  const error = { message, type: "api_error", param: null, code: status };
  return { status, body: path.startsWith("/v1/messages") ? { type: "error", error } : { error } };
}

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const modelEntry = (id: string): object => ({
  id,
  object: "model",
  created: 1_767_225_600,
  owned_by: "vllm",
  max_model_len: 202_752,
});

/** If the client sets no limit. */
const defaultTokens = 64;

function replyTo(body: JsonObject, model: string, usage: Usage | undefined) {
  const limit = body["max_completion_tokens"] ?? body["max_tokens"] ?? body["max_output_tokens"];
  const texts = textsOf(
    typeof limit === "number" ? limit : defaultTokens,
    isObject(body["chat_template_kwargs"]) ? body["chat_template_kwargs"] : {},
  );
  const input = ["messages", "prompt", "input", "system", "instructions"].map((name) => body[name] ?? "");
  const counted: Usage = { inputTokens: Math.ceil(JSON.stringify(input).length / 4), outputTokens: texts.length };
  return {
    /** Each API adds its own prefix. */
    id: randomUUID().replaceAll("-", ""),
    created: Math.floor(Date.now() / 1000),
    model,
    body,
    texts,
    /** The client's limit ends it, and not the model. */
    hitsLimit: typeof limit === "number",
    usage: usage ?? counted,
  };
}

const words =
  "A toll gate stands where the road narrows. Whoever passes shows a key, and the keeper writes down how much went " +
  "through: so many words in, so many words out. The keeper neither reads the letters nor holds the carts up, since " +
  "a road that is slow is a road that nobody takes. In the evening the book is closed, and every line of it adds up. " +
  "Travellers from far away speak other tongues — 한국어, français, 日本語 — and the book counts them all alike. 🙂";
const thoughts =
  "The user wants an answer. First I look at what was asked, then at what is known, and then I weigh the two. " +
  "There may be more than one reading, so I take the plain one and keep the other in mind.";

/** A token is a word with the blank before it. With thinking on, half of them are thoughts; more at maximum effort. */
function textsOf(count: number, { thinking, reasoning_effort: effort }: JsonObject): string[] {
  const thought = thinking !== true || count < 4 ? 0 : Math.floor(count * (effort === "max" ? 0.75 : 0.5));
  const prose = wordsOf(words, count - thought);
  return thought === 0 ? prose : ["<think>", ...wordsOf(thoughts, thought - 2), "</think>\n\n", ...prose];
}

function wordsOf(text: string, count: number): string[] {
  const all = text.split(" ");
  return Array.from({ length: count }, (_, index) => `${index === 0 ? "" : " "}${all[index % all.length]}`);
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const named = (type: string, fields: object): string => `event: ${type}\n${data({ type, ...fields })}`;

const chat: Dialect = {
  whole: (reply) => ({
    ...chatOf(reply, "chat.completion", { message: { role: "assistant", content: reply.texts.join("") } }, true),
    usage: openAiUsage(reply.usage),
  }),
  events(reply) {
    const chunk = (delta: object, isLast = false): object => chatOf(reply, "chat.completion.chunk", { delta }, isLast);
    const { stream_options: options } = reply.body;
    const asksUsage = isObject(options) && options["include_usage"] === true;
    const usage = asksUsage ? data({ ...chunk({}), choices: [], usage: openAiUsage(reply.usage) }) : "";
    return {
      opening: data(chunk({ role: "assistant", content: "" })),
      token: (content) => data(chunk({ content })),
      closing: `${data(chunk({}, true))}${usage}data: [DONE]\n\n`,
    };
  },
};

const chatOf = (
  { id, created, model, hitsLimit }: Reply,
  object: string,
  content: object,
  isLast: boolean,
): object => ({
  id: `chatcmpl-${id}`,
  object,
  created,
  model,
  choices: [{ index: 0, ...content, finish_reason: isLast ? (hitsLimit ? "length" : "stop") : null }],
});

const openAiUsage = ({ inputTokens, outputTokens, cachedInputTokens }: Usage): object => ({
  prompt_tokens: inputTokens,
  total_tokens: inputTokens + outputTokens,
  completion_tokens: outputTokens,
  ...(cachedInputTokens !== undefined && { prompt_tokens_details: { cached_tokens: cachedInputTokens } }),
});

const messages: Dialect = {
  whole: (reply) => messageOf(reply, [{ type: "text", text: reply.texts.join("") }], stopReasonOf(reply), reply.usage),
  events: (reply) => ({
    opening:
      named("message_start", { message: messageOf(reply, [], null, { ...reply.usage, outputTokens: 0 }) }) +
      named("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    token: (text) => named("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
    closing:
      named("content_block_stop", { index: 0 }) +
      named("message_delta", {
        delta: { stop_reason: stopReasonOf(reply), stop_sequence: null },
        usage: { output_tokens: reply.usage.outputTokens },
      }) +
      named("message_stop", {}),
  }),
};

const stopReasonOf = ({ hitsLimit }: Reply): string => (hitsLimit ? "max_tokens" : "end_turn");

const messageOf = ({ id, model }: Reply, content: object[], stopReason: string | null, usage: Usage): object => ({
  id: `msg_${id}`,
  type: "message",
  role: "assistant",
  model,
  content,
  stop_reason: stopReason,
  stop_sequence: null,
  usage: {
    input_tokens: usage.inputTokens,
    output_tokens: usage.outputTokens,
    ...(usage.cachedInputTokens !== undefined && { cache_read_input_tokens: usage.cachedInputTokens }),
  },
});

const responses: Dialect = {
  whole: (reply) => responseOf(reply, true),
  events(reply) {
    let sequence = 0;
    const event = (type: string, fields: object): string => named(type, { ...fields, sequence_number: sequence++ });
    const at = { item_id: `msg_${reply.id}`, output_index: 0, content_index: 0 };
    const text = reply.texts.join("");
    return {
      opening:
        event("response.created", { response: responseOf(reply, false) }) +
        event("response.output_item.added", { output_index: 0, item: itemOf(reply, undefined) }) +
        event("response.content_part.added", { ...at, part: partOf("") }),
      token: (delta) => event("response.output_text.delta", { ...at, delta, logprobs: [] }),
      get closing() {
        return (
          event("response.output_text.done", { ...at, text, logprobs: [] }) +
          event("response.content_part.done", { ...at, part: partOf(text) }) +
          event("response.output_item.done", { output_index: 0, item: itemOf(reply, text) }) +
          event(`response.${statusOf(reply)}`, { response: responseOf(reply, true) })
        );
      },
    };
  },
};

/** In this API a response that hits its limit is incomplete, not completed. */
const statusOf = ({ hitsLimit }: Reply): string => (hitsLimit ? "incomplete" : "completed");

const partOf = (text: string): object => ({ type: "output_text", annotations: [], logprobs: [], text });

const itemOf = ({ id }: Reply, text: string | undefined): object => ({
  id: `msg_${id}`,
  type: "message",
  status: text === undefined ? "in_progress" : "completed",
  role: "assistant",
  content: text === undefined ? [] : [partOf(text)],
});

function responseOf(reply: Reply, isOver: boolean): object {
  const { id, created, model, texts, hitsLimit, usage } = reply;
  return {
    id: `resp_${id}`,
    object: "response",
    created_at: created,
    status: isOver ? statusOf(reply) : "in_progress",
    error: null,
    incomplete_details: isOver && hitsLimit ? { reason: "max_output_tokens" } : null,
    model,
    output: isOver ? [itemOf(reply, texts.join(""))] : [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    usage: isOver
      ? {
          input_tokens: usage.inputTokens,
          output_tokens: usage.outputTokens,
          total_tokens: usage.inputTokens + usage.outputTokens,
        }
      : null,
  };
}

/** The same text always has the same vector. */
function vectorOf(input: unknown): Float32Array {
  const seed = Bun.hash.crc32(JSON.stringify(input) ?? "");
  return Float32Array.from({ length: 384 }, (_, index) => Math.sin(seed + index * 0.618) / Math.sqrt(192));
}

const embeddings: Dialect = {
  whole: ({ id, created, model, body, usage }) => ({
    id: `embd-${id}`,
    object: "list",
    created,
    model,
    data: [body["input"]].flat().map((input, index) => {
      const vector = vectorOf(input);
      const isBase64 = body["encoding_format"] === "base64";
      const embedding = isBase64 ? Buffer.from(vector.buffer).toString("base64") : Array.from(vector);
      return { object: "embedding", index, embedding };
    }),
    usage: openAiUsage({ ...usage, outputTokens: 0 }),
  }),
};

const dialects: Readonly<Record<string, Dialect>> = {
  "/v1/chat/completions": chat,
  "/v1/embeddings": embeddings,
  "/v1/messages": messages,
  "/v1/responses": responses,
};
