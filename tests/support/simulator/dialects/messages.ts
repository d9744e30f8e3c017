import { findCached, type Generation, usageOf } from "../generation.ts";
import {
  type Frame,
  jsonResponse,
  namedEvent,
  type SimulatedResponse,
  streamResponse,
  tick,
  isObject,
} from "../simulated-response.ts";
import { fullText, thoughtOf, tokenText } from "../text.ts";
import type { ToolCall } from "../tools.ts";
import type { Usage } from "../../../../src/domain/usage.ts";

/** POST /v1/messages. */
export function messagesResponse(requested: Generation): SimulatedResponse {
  const { call } = requested;
  const thoughts = thoughtTokens(requested);
  const generation =
    call === undefined
      ? { ...requested, ...(thoughts > 0 && { outputTokens: requested.outputTokens - thoughts, thinkingTokens: 0 }) }
      : { ...requested, outputTokens: call.pieces.length, hitsLimit: false };
  const usage = usageOf({ ...generation, outputTokens: generation.outputTokens + thoughts });
  const isReported = generation.usageMode === "reported";
  if (generation.body["stream"] === true)
    return streamResponse(events(generation, { call, thoughts }, usage), usage, isReported);
  const message = {
    ...emptyMessage(generation),
    content: [
      ...(thoughts > 0 ? [{ type: "thinking", thinking: thoughtText(thoughts), signature }] : []),
      call === undefined ? { type: "text", text: fullText(generation) } : toolUse(generation, call),
    ],
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

function inputOf(usage: Usage): object {
  const cached = findCached(usage);
  return { input_tokens: usage.inputTokens, ...(cached !== undefined && { cache_read_input_tokens: cached }) };
}

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

const signature = "c2ltdWxhdGVk";

/** With `thinking` on, half of the output are thoughts, in a block of their own, unless the template has them in the text. */
function thoughtTokens({ body, outputTokens, thinkingTokens }: Generation): number {
  const thinking = isObject(body["thinking"]) ? body["thinking"] : {};
  const isOn = thinking["type"] === "enabled" || thinking["type"] === "adaptive";
  if (!isOn || thinkingTokens > 0 || outputTokens < 2 || outputTokens === Infinity) return 0;
  const budget = thinking["budget_tokens"];
  return Math.min(Math.floor(outputTokens / 2), typeof budget === "number" ? Math.max(1, budget) : Infinity);
}

const thoughtText = (tokens: number): string => Array.from({ length: tokens }, (_, index) => thoughtOf(index)).join("");

function* thinkingEvents(thoughts: number): Generator<Frame> {
  const block = { type: "thinking", thinking: "", signature: "" };
  yield namedEvent("content_block_start", { index: 0, content_block: block });
  for (let index = 0; index < thoughts; index++) {
    yield tick;
    yield namedEvent("content_block_delta", {
      index: 0,
      delta: { type: "thinking_delta", thinking: thoughtOf(index) },
    });
  }
  yield namedEvent("content_block_delta", { index: 0, delta: { type: "signature_delta", signature } });
  yield namedEvent("content_block_stop", { index: 0 });
}

function* events(
  generation: Generation,
  {
    call,
    thoughts,
  }: {
    call: ToolCall | undefined;
    /** Tokens of the block of thoughts; 0: there is none. */
    thoughts: number;
  },
  usage: Usage,
): Generator<Frame> {
  const opening = {
    ...emptyMessage(generation),
    ...usageMember(generation, { ...inputOf(usage), output_tokens: 0 }),
  };
  yield namedEvent("message_start", { message: opening });
  const at = thoughts > 0 ? 1 : 0;
  if (thoughts > 0) yield* thinkingEvents(thoughts);
  const block =
    call === undefined
      ? { type: "text", text: "" }
      : { type: "tool_use", id: `toolu_${generation.id}`, name: call.name, input: {} };
  yield namedEvent("content_block_start", { index: at, content_block: block });
  yield namedEvent("ping", {});
  const start = `event: content_block_delta\ndata: {"type":"content_block_delta","index":${at},"delta":`;
  for (let index = 0; index < generation.outputTokens; index++) {
    yield tick;
    const [type, member, text] =
      call === undefined
        ? ["text_delta", "text", tokenText(generation, index)]
        : ["input_json_delta", "partial_json", call.pieces[index] ?? ""];
    yield `${start}{"type":"${type}","${member}":${JSON.stringify(text)}}}\n\n`;
  }
  yield namedEvent("content_block_stop", { index: at });
  const delta = { stop_reason: stopReason(generation, call), stop_sequence: null };
  yield namedEvent("message_delta", { delta, ...usageMember(generation, { output_tokens: usage.outputTokens }) });
  yield namedEvent("message_stop", {});
}
