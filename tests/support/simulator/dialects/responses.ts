import { type Generation, usageOf } from "../generation.ts";
import {
  isObject,
  type JsonObject,
  type Frame,
  jsonResponse,
  namedEvent,
  type SimulatedResponse,
  streamResponse,
  tick,
} from "../simulated-response.ts";
import { fullText, tokenText } from "../text.ts";
import type { ToolCall } from "../tools.ts";
import type { Usage } from "../../../../src/domain/usage.ts";

/** POST /v1/responses. */
export function responsesResponse(requested: Generation): SimulatedResponse {
  const { call } = requested;
  const generation =
    call === undefined ? requested : { ...requested, outputTokens: call.pieces.length, hitsLimit: false };
  const usage = usageOf(generation);
  const isReported = generation.usageMode === "reported";
  if (generation.body["stream"] === true) return streamResponse(events(generation, call), usage, isReported);
  return jsonResponse(200, finalResponse(generation, call), usage, isReported);
}

/** The members that repeat what the request asks for, with their values if it does not. */
const repeated: JsonObject = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  previous_response_id: null,
  prompt_cache_key: null,
  reasoning: { effort: null, summary: null },
  safety_identifier: null,
  service_tier: "default",
  store: true,
  temperature: 1,
  text: { format: { type: "text" }, verbosity: "medium" },
  tool_choice: "auto",
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
};

/** Every member that the compliance suite of Open Responses reads. */
function responseObject(generation: Generation, fields: JsonObject): JsonObject {
  const { body, usageMode } = generation;
  const given = Object.entries(repeated).map(([name, otherwise]) => [name, body[name] ?? otherwise]);
  return {
    id: `resp_${generation.id}`,
    object: "response",
    created_at: generation.created,
    completed_at: null,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    model: generation.model,
    output: [],
    ...Object.fromEntries(given),
    tools: Array.isArray(body["tools"]) ? body["tools"].map(toolOf) : [],
    ...(usageMode !== "none" && { usage: null }),
    ...fields,
  };
}

const toolOf = (tool: unknown): unknown =>
  isObject(tool) && tool["type"] === "function" ? { description: null, parameters: null, strict: null, ...tool } : tool;

/** POST /v1/responses/compact: what a client sends in place of the conversation so far. */
export function compactionResponse(generation: Generation): SimulatedResponse {
  const usage = usageOf(generation);
  const item = { id: `cmp_${generation.id}`, type: "compaction", encrypted_content: fullText(generation) };
  const { id, created } = generation;
  const compaction = { id: `resp_${id}`, object: "response.compaction", created_at: created, output: [item] };
  const isReported = generation.usageMode === "reported";
  return jsonResponse(200, { ...compaction, ...usageMember(generation, usage) }, usage, isReported);
}

/** In this API a response that hits its limit is incomplete, not completed. */
function finalResponse(generation: Generation, call: ToolCall | undefined): JsonObject {
  const item =
    call === undefined ? messageItem(generation, fullText(generation)) : callItem(generation, call, call.arguments);
  return responseObject(generation, {
    completed_at: generation.hitsLimit ? null : Math.floor(Date.now() / 1000),
    status: generation.hitsLimit ? "incomplete" : "completed",
    incomplete_details: generation.hitsLimit ? { reason: "max_output_tokens" } : null,
    output: [item],
    ...usageMember(generation, usageOf(generation)),
  });
}

function usageMember({ usageMode }: Generation, { inputTokens, outputTokens }: Usage): { usage?: unknown } {
  if (usageMode === "none") return {};
  if (usageMode === "null") return { usage: null };
  const usage = {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  };
  return { usage };
}

function messageItem(generation: Generation, text: string): JsonObject {
  return {
    id: `msg_${generation.id}`,
    type: "message",
    status: "completed",
    role: "assistant",
    content: [textPart(text)],
  };
}

function textPart(text: string): JsonObject {
  return { type: "output_text", annotations: [], logprobs: [], text };
}

function callItem(generation: Generation, call: ToolCall, text: string): JsonObject {
  const { name } = call;
  return {
    id: `fc_${generation.id}`,
    type: "function_call",
    status: "completed",
    call_id: `call_${generation.id}`,
    name,
    arguments: text,
  };
}

function* events(generation: Generation, call: ToolCall | undefined): Generator<Frame> {
  let sequenceNumber = 0;
  const event = (type: string, fields: JsonObject): string =>
    namedEvent(type, { ...fields, sequence_number: sequenceNumber++ });
  yield event("response.created", { response: responseObject(generation, {}) });
  yield event("response.in_progress", { response: responseObject(generation, {}) });
  yield* call === undefined ? messageEvents(generation, event) : callEvents(generation, call, event);
  const response = finalResponse(generation, call);
  yield event(generation.hitsLimit ? "response.incomplete" : "response.completed", { response });
}

type MakeEvent = (type: string, fields: JsonObject) => string;

function* messageEvents(generation: Generation, event: MakeEvent): Generator<Frame> {
  const at = { item_id: `msg_${generation.id}`, output_index: 0, content_index: 0 };
  const opening = { ...messageItem(generation, ""), status: "in_progress", content: [] };
  yield event("response.output_item.added", { output_index: 0, item: opening });
  yield event("response.content_part.added", { ...at, part: textPart("") });
  for (let index = 0; index < generation.outputTokens; index++) {
    yield tick;
    yield event("response.output_text.delta", { ...at, delta: tokenText(generation, index), logprobs: [] });
  }
  const text = fullText(generation);
  yield event("response.output_text.done", { ...at, text, logprobs: [] });
  yield event("response.content_part.done", { ...at, part: textPart(text) });
  yield event("response.output_item.done", { output_index: 0, item: messageItem(generation, text) });
}

function* callEvents(generation: Generation, call: ToolCall, event: MakeEvent): Generator<Frame> {
  const at = { item_id: `fc_${generation.id}`, output_index: 0 };
  const opening = { ...callItem(generation, call, ""), status: "in_progress" };
  yield event("response.output_item.added", { output_index: 0, item: opening });
  for (const delta of call.pieces) {
    yield tick;
    yield event("response.function_call_arguments.delta", { ...at, delta });
  }
  yield event("response.function_call_arguments.done", { ...at, name: call.name, arguments: call.arguments });
  yield event("response.output_item.done", { output_index: 0, item: callItem(generation, call, call.arguments) });
}
