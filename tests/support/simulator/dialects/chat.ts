// The APIs of the simulated model, a file for each: what the model generates, planned in `generation.ts` from what all
// of them have in common, becomes the response of that API, whole or as frames.
//
// It keeps true: a tick stands where a model would compute the next token, so that a paced stream can wait there.

import { type Generation, usageOf, findCached } from "../generation.ts";
import {
  isObject,
  type Frame,
  jsonResponse,
  type SimulatedResponse,
  streamResponse,
  tick,
} from "../simulated-response.ts";
import { fullText, tokenText } from "../text.ts";
import type { ToolCall } from "../tools.ts";

/** POST /v1/chat/completions, with the members that vLLM sends. */
export function chatResponse(requested: Generation): SimulatedResponse {
  const { call } = requested;
  const generation =
    call === undefined ? requested : { ...requested, outputTokens: call.pieces.length + 1, hitsLimit: false };
  if (generation.body["stream"] !== true)
    return jsonResponse(200, completion(generation, call), usageOf(generation), generation.usageMode === "reported");
  const { include_usage: asked, continuous_usage_stats: continuous } = streamOptions(generation);
  const reported = asked === true && generation.usageMode === "reported";
  return streamResponse(
    chunks(generation, call, reported, reported && continuous === true),
    usageOf(generation),
    reported,
  );
}

function streamOptions(generation: Generation): Readonly<Record<string, unknown>> {
  return isObject(generation.body["stream_options"]) ? generation.body["stream_options"] : {};
}

function completion(generation: Generation, call: ToolCall | undefined): unknown {
  const message = {
    role: "assistant",
    content: call === undefined ? fullText(generation) : null,
    tool_calls: toolCalls(generation, call),
  };
  return {
    id: `chatcmpl-${generation.id}`,
    object: "chat.completion",
    created: generation.created,
    model: generation.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(generation, call), stop_reason: null }],
    ...usageMember(generation),
  };
}

function toolCalls(generation: Generation, call: ToolCall | undefined): unknown[] {
  if (call === undefined) return [];
  const { name, arguments: text } = call;
  return [{ id: `chatcmpl-tool-${generation.id}`, type: "function", function: { name, arguments: text } }];
}

function finishReason(generation: Generation, call: ToolCall | undefined): string {
  if (call !== undefined) return "tool_calls";
  return generation.hitsLimit ? "length" : "stop";
}

function* chunks(
  generation: Generation,
  call: ToolCall | undefined,
  reported: boolean,
  continuous: boolean,
): Generator<Frame> {
  // Concatenated by hand, because a simulator with thousands of streams spends its time here and in the socket.
  const start = `data: {"id":"chatcmpl-${generation.id}","object":"chat.completion.chunk","created":${generation.created},"model":${JSON.stringify(generation.model)},"choices":[`;
  const chunk = (delta: string, tokens: number, finish = "null"): string => {
    const usage =
      generation.usageMode === "null"
        ? `,"usage":null`
        : continuous
          ? `,"usage":${openAiUsage(generation, tokens)}`
          : "";
    return `${start}{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]${usage}}\n\n`;
  };
  yield chunk(`{"role":"assistant","content":""}`, 0);
  for (let index = 0; index < generation.outputTokens; index++) {
    yield tick;
    yield chunk(call === undefined ? contentDelta(generation, index) : toolDelta(generation, call, index), index + 1);
  }
  yield chunk("{}", generation.outputTokens, JSON.stringify(finishReason(generation, call)));
  if (reported) yield `${start}],"usage":${openAiUsage(generation)}}\n\n`;
  if (generation.sendsDone) yield "data: [DONE]\n\n";
}

function contentDelta(generation: Generation, index: number): string {
  return `{"content":${JSON.stringify(tokenText(generation, index))}}`;
}

function toolDelta(generation: Generation, call: ToolCall, index: number): string {
  if (index > 0) {
    return JSON.stringify({ tool_calls: [{ index: 0, function: { arguments: call.pieces[index - 1] } }] });
  }
  const opening = { name: call.name, arguments: "" };
  return JSON.stringify({
    tool_calls: [{ id: `chatcmpl-tool-${generation.id}`, type: "function", index: 0, function: opening }],
  });
}

/** The `usage` of chat completions and completions as JSON text, by default for all output tokens. */
export function openAiUsage(generation: Generation, tokensSoFar?: number): string {
  const usage = usageOf(generation);
  const { inputTokens } = usage;
  const outputTokens = tokensSoFar ?? usage.outputTokens;
  const cached = findCached(usage);
  const details = cached === undefined ? "" : `,"prompt_tokens_details":{"cached_tokens":${cached}}`;
  return `{"prompt_tokens":${inputTokens},"total_tokens":${inputTokens + outputTokens},"completion_tokens":${outputTokens}${details}}`;
}

/** The `usage` member of a whole body, if it has one. */
export function usageMember(generation: Generation): { usage?: unknown } {
  if (generation.usageMode === "none") return {};
  return { usage: generation.usageMode === "null" ? null : JSON.parse(openAiUsage(generation)) };
}
