import type { Usage } from "../../domain.ts";
import {
  type SimulatedResponse,
  tick,
  eventStream,
  type Frame,
  type Job,
  jsonAnswer,
  namedEvent,
  usageOf,
} from "../answer.ts";
import { fullText, tokenText } from "../text.ts";
import { findToolCall, type ToolCall } from "../tools.ts";

/** POST /v1/messages. */
export function answerMessages(job: Job): SimulatedResponse {
  const call = findToolCall(job.body);
  const spoken = call === undefined ? job : { ...job, outputTokens: call.pieces.length, cutShort: false };
  const usage = usageOf(spoken);
  const told = job.usageMode === "told";
  if (job.body["stream"] === true) return eventStream(events(spoken, call, usage), usage, told);
  const message = {
    ...emptyMessage(spoken),
    content: [call === undefined ? { type: "text", text: fullText(spoken) } : toolUse(spoken, call)],
    stop_reason: stopReason(spoken, call),
    ...usageMember(spoken, { input_tokens: usage.inputTokens, output_tokens: usage.outputTokens }),
  };
  return jsonAnswer(200, message, usage, told);
}

/** POST /v1/messages/count_tokens: nothing is generated, so nothing is counted. */
export function answerCountTokens(job: Job): SimulatedResponse {
  return jsonAnswer(200, { input_tokens: job.inputTokens });
}

function emptyMessage(job: Job): Readonly<Record<string, unknown>> {
  return {
    id: `msg_${job.id}`,
    type: "message",
    role: "assistant",
    model: job.model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
  };
}

function usageMember(job: Job, usage: unknown): { usage?: unknown } {
  if (job.usageMode === "none") return {};
  return { usage: job.usageMode === "null" ? null : usage };
}

function stopReason(job: Job, call: ToolCall | undefined): string {
  if (call !== undefined) return "tool_use";
  return job.cutShort ? "max_tokens" : "end_turn";
}

function toolUse(job: Job, call: ToolCall): unknown {
  return { type: "tool_use", id: `toolu_${job.id}`, name: call.name, input: JSON.parse(call.arguments) };
}

function* events(job: Job, call: ToolCall | undefined, usage: Usage): Generator<Frame> {
  const opening = { ...emptyMessage(job), ...usageMember(job, { input_tokens: usage.inputTokens, output_tokens: 0 }) };
  yield namedEvent("message_start", { message: opening });
  const block =
    call === undefined
      ? { type: "text", text: "" }
      : { type: "tool_use", id: `toolu_${job.id}`, name: call.name, input: {} };
  yield namedEvent("content_block_start", { index: 0, content_block: block });
  yield namedEvent("ping", {});
  const start = `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":`;
  for (let index = 0; index < job.outputTokens; index++) {
    yield tick;
    const [type, member, text] =
      call === undefined
        ? ["text_delta", "text", tokenText(job, index)]
        : ["input_json_delta", "partial_json", call.pieces[index] ?? ""];
    yield `${start}{"type":"${type}","${member}":${JSON.stringify(text)}}}\n\n`;
  }
  yield namedEvent("content_block_stop", { index: 0 });
  const delta = { stop_reason: stopReason(job, call), stop_sequence: null };
  yield namedEvent("message_delta", { delta, ...usageMember(job, { output_tokens: usage.outputTokens }) });
  yield namedEvent("message_stop", {});
}
