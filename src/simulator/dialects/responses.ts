import type { Usage } from "../../domain.ts";
import {
  type SimulatedResponse,
  tick,
  eventStream,
  type Frame,
  type Job,
  jsonAnswer,
  type JsonObject,
} from "../answer.ts";
import { namedEvent, usageOf } from "../answer.ts";
import { fullText, tokenText } from "../text.ts";
import { findToolCall, type ToolCall } from "../tools.ts";

/** POST /v1/responses. */
export function answerResponses(job: Job): SimulatedResponse {
  const call = findToolCall(job.body);
  const spoken = call === undefined ? job : { ...job, outputTokens: call.pieces.length, cutShort: false };
  const usage = usageOf(spoken);
  const told = job.usageMode === "told";
  if (job.body["stream"] === true) return eventStream(events(spoken, call), usage, told);
  return jsonAnswer(200, finalResponse(spoken, call), usage, told);
}

function responseObject(job: Job, fields: JsonObject): JsonObject {
  return {
    id: `resp_${job.id}`,
    object: "response",
    created_at: job.created,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    instructions: job.body["instructions"] ?? null,
    max_output_tokens: job.body["max_output_tokens"] ?? null,
    metadata: job.body["metadata"] ?? {},
    model: job.model,
    output: [],
    parallel_tool_calls: true,
    previous_response_id: null,
    temperature: 1,
    text: { format: { type: "text" } },
    tool_choice: job.body["tool_choice"] ?? "auto",
    tools: job.body["tools"] ?? [],
    top_p: 1,
    truncation: "disabled",
    ...fields,
  };
}

/** An answer that met its limit is incomplete, not completed. */
function finalResponse(job: Job, call: ToolCall | undefined): JsonObject {
  const item = call === undefined ? messageItem(job, fullText(job)) : callItem(job, call, call.arguments);
  return responseObject(job, {
    status: job.cutShort ? "incomplete" : "completed",
    incomplete_details: job.cutShort ? { reason: "max_output_tokens" } : null,
    output: [item],
    ...usageMember(job, usageOf(job)),
  });
}

function usageMember({ usageMode }: Job, { inputTokens, outputTokens }: Usage): { usage?: unknown } {
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

function messageItem(job: Job, text: string): JsonObject {
  return { id: `msg_${job.id}`, type: "message", status: "completed", role: "assistant", content: [textPart(text)] };
}

function textPart(text: string): JsonObject {
  return { type: "output_text", annotations: [], logprobs: [], text };
}

function callItem(job: Job, call: ToolCall, text: string): JsonObject {
  const { name } = call;
  return {
    id: `fc_${job.id}`,
    type: "function_call",
    status: "completed",
    call_id: `call_${job.id}`,
    name,
    arguments: text,
  };
}

function* events(job: Job, call: ToolCall | undefined): Generator<Frame> {
  let sequenceNumber = 0;
  const event = (type: string, fields: JsonObject): string =>
    namedEvent(type, { ...fields, sequence_number: sequenceNumber++ });
  yield event("response.created", { response: responseObject(job, {}) });
  yield event("response.in_progress", { response: responseObject(job, {}) });
  yield* call === undefined ? messageEvents(job, event) : callEvents(job, call, event);
  const response = finalResponse(job, call);
  yield event(job.cutShort ? "response.incomplete" : "response.completed", { response });
}

type MakeEvent = (type: string, fields: JsonObject) => string;

function* messageEvents(job: Job, event: MakeEvent): Generator<Frame> {
  const at = { item_id: `msg_${job.id}`, output_index: 0, content_index: 0 };
  const opening = { ...messageItem(job, ""), status: "in_progress", content: [] };
  yield event("response.output_item.added", { output_index: 0, item: opening });
  yield event("response.content_part.added", { ...at, part: textPart("") });
  for (let index = 0; index < job.outputTokens; index++) {
    yield tick;
    yield event("response.output_text.delta", { ...at, delta: tokenText(job, index), logprobs: [] });
  }
  const text = fullText(job);
  yield event("response.output_text.done", { ...at, text, logprobs: [] });
  yield event("response.content_part.done", { ...at, part: textPart(text) });
  yield event("response.output_item.done", { output_index: 0, item: messageItem(job, text) });
}

function* callEvents(job: Job, call: ToolCall, event: MakeEvent): Generator<Frame> {
  const at = { item_id: `fc_${job.id}`, output_index: 0 };
  const opening = { ...callItem(job, call, ""), status: "in_progress" };
  yield event("response.output_item.added", { output_index: 0, item: opening });
  for (const delta of call.pieces) {
    yield tick;
    yield event("response.function_call_arguments.delta", { ...at, delta });
  }
  yield event("response.function_call_arguments.done", { ...at, name: call.name, arguments: call.arguments });
  yield event("response.output_item.done", { output_index: 0, item: callItem(job, call, call.arguments) });
}
