import { type Generation, usageOf } from "../generation.ts";
import {
  type Frame,
  jsonResponse,
  namedEvent,
  type SimulatedResponse,
  streamResponse,
  tick,
} from "../simulated-response.ts";
import { fullText, tokenText } from "../text.ts";
import { findToolCall, type ToolCall } from "../tools.ts";
import type { Usage } from "../../domain/usage.ts";

/** POST /v1/messages. */
export function messagesResponse(requested: Generation): SimulatedResponse {
  const call = findToolCall(requested.body);
  const generation =
    call === undefined ? requested : { ...requested, outputTokens: call.pieces.length, hitsLimit: false };
  const usage = usageOf(generation);
  const isReported = generation.usageMode === "reported";
  if (generation.body["stream"] === true) return streamResponse(events(generation, call, usage), usage, isReported);
  const message = {
    ...emptyMessage(generation),
    content: [call === undefined ? { type: "text", text: fullText(generation) } : toolUse(generation, call)],
    stop_reason: stopReason(generation, call),
    ...usageMember(generation, { ...inputOf(usage), output_tokens: usage.outputTokens }),
  };
  return jsonResponse(200, message, usage, isReported);
}

/** POST /v1/messages/count_tokens. It generates nothing, so it counts no usage. */
export function countTokensResponse(generation: Generation): SimulatedResponse {
  return jsonResponse(200, { input_tokens: generation.inputTokens });
}

function emptyMessage(generation: Generation): Readonly<Record<string, unknown>> {
  return {
    id: `msg_${generation.id}`,
    type: "message",
    role: "assistant",
    model: generation.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

const inputOf = ({ inputTokens, cachedInputTokens: cached }: Usage): object => ({
  input_tokens: inputTokens,
  ...(cached !== undefined && { cache_read_input_tokens: cached }),
});

function usageMember(generation: Generation, usage: unknown): { usage?: unknown } {
  if (generation.usageMode === "none") return {};
  return { usage: generation.usageMode === "null" ? null : usage };
}

function stopReason(generation: Generation, call: ToolCall | undefined): string {
  if (call !== undefined) return "tool_use";
  return generation.hitsLimit ? "max_tokens" : "end_turn";
}

function toolUse(generation: Generation, call: ToolCall): unknown {
  return { type: "tool_use", id: `toolu_${generation.id}`, name: call.name, input: JSON.parse(call.arguments) };
}

function* events(generation: Generation, call: ToolCall | undefined, usage: Usage): Generator<Frame> {
  const opening = {
    ...emptyMessage(generation),
    ...usageMember(generation, { ...inputOf(usage), output_tokens: 0 }),
  };
  yield namedEvent("message_start", { message: opening });
  const block =
    call === undefined
      ? { type: "text", text: "" }
      : { type: "tool_use", id: `toolu_${generation.id}`, name: call.name, input: {} };
  yield namedEvent("content_block_start", { index: 0, content_block: block });
  yield namedEvent("ping", {});
  const start = `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":`;
  for (let index = 0; index < generation.outputTokens; index++) {
    yield tick;
    const [type, member, text] =
      call === undefined
        ? ["text_delta", "text", tokenText(generation, index)]
        : ["input_json_delta", "partial_json", call.pieces[index] ?? ""];
    yield `${start}{"type":"${type}","${member}":${JSON.stringify(text)}}}\n\n`;
  }
  yield namedEvent("content_block_stop", { index: 0 });
  const delta = { stop_reason: stopReason(generation, call), stop_sequence: null };
  yield namedEvent("message_delta", { delta, ...usageMember(generation, { output_tokens: usage.outputTokens }) });
  yield namedEvent("message_stop", {});
}
