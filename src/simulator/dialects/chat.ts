import {
  type SimulatedResponse,
  tick,
  eventStream,
  type Frame,
  isObject,
  type Job,
  jsonAnswer,
  usageOf,
} from "../answer.ts";
import { fullText, tokenText } from "../text.ts";
import { findToolCall, type ToolCall } from "../tools.ts";
import { openAiUsage, usageMember } from "./openai-usage.ts";

/** POST /v1/chat/completions, with the members that vLLM sends. */
export function answerChat(job: Job): SimulatedResponse {
  const call = findToolCall(job.body);
  const spoken = call === undefined ? job : { ...job, outputTokens: call.pieces.length + 1, cutShort: false };
  if (job.body["stream"] !== true)
    return jsonAnswer(200, completion(spoken, call), usageOf(spoken), job.usageMode === "told");
  const { include_usage: asked, continuous_usage_stats: continuous } = streamOptions(job);
  const reported = asked === true && job.usageMode === "told";
  return eventStream(chunks(spoken, call, reported, reported && continuous === true), usageOf(spoken), reported);
}

function streamOptions(job: Job): Readonly<Record<string, unknown>> {
  return isObject(job.body["stream_options"]) ? job.body["stream_options"] : {};
}

function completion(job: Job, call: ToolCall | undefined): unknown {
  const message = {
    role: "assistant",
    content: call === undefined ? fullText(job) : null,
    tool_calls: toolCalls(job, call),
  };
  return {
    id: `chatcmpl-${job.id}`,
    object: "chat.completion",
    created: job.created,
    model: job.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason(job, call), stop_reason: null }],
    ...usageMember(job),
  };
}

function toolCalls(job: Job, call: ToolCall | undefined): unknown[] {
  if (call === undefined) return [];
  const { name, arguments: text } = call;
  return [{ id: `chatcmpl-tool-${job.id}`, type: "function", function: { name, arguments: text } }];
}

function finishReason(job: Job, call: ToolCall | undefined): string {
  if (call !== undefined) return "tool_calls";
  return job.cutShort ? "length" : "stop";
}

function* chunks(job: Job, call: ToolCall | undefined, reported: boolean, continuous: boolean): Generator<Frame> {
  // Joined by hand: a paced simulator of thousands of streams spends its time here and in the socket.
  const start = `data: {"id":"chatcmpl-${job.id}","object":"chat.completion.chunk","created":${job.created},"model":${JSON.stringify(job.model)},"choices":[`;
  const chunk = (delta: string, tokens: number, finish = "null"): string => {
    const usage = job.usageMode === "null" ? `,"usage":null` : continuous ? `,"usage":${openAiUsage(job, tokens)}` : "";
    return `${start}{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]${usage}}\n\n`;
  };
  yield chunk(`{"role":"assistant","content":""}`, 0);
  for (let index = 0; index < job.outputTokens; index++) {
    yield tick;
    yield chunk(call === undefined ? contentDelta(job, index) : toolDelta(job, call, index), index + 1);
  }
  yield chunk("{}", job.outputTokens, JSON.stringify(finishReason(job, call)));
  if (reported) yield `${start}],"usage":${openAiUsage(job)}}\n\n`;
  if (job.done) yield "data: [DONE]\n\n";
}

function contentDelta(job: Job, index: number): string {
  return `{"content":${JSON.stringify(tokenText(job, index))}}`;
}

function toolDelta(job: Job, call: ToolCall, index: number): string {
  if (index > 0) {
    return JSON.stringify({ tool_calls: [{ index: 0, function: { arguments: call.pieces[index - 1] } }] });
  }
  const opening = { name: call.name, arguments: "" };
  return JSON.stringify({
    tool_calls: [{ id: `chatcmpl-tool-${job.id}`, type: "function", index: 0, function: opening }],
  });
}
