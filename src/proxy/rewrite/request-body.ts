import { isNameInAnyCase } from "../json/decode.ts";
import { createRepeatedSlot, createSlot, type JsonSlot, type RepeatedSlot } from "../json/slots.ts";
import { type ConversationSlots, createConversationSlots } from "./conversation.ts";
import type { Endpoint } from "./endpoint.ts";
import { isReasoningModelServed } from "./model-name.ts";
import type { RewriteRules } from "./rules.ts";

/**
 * The members of a request's body that rules read or edit. What no rule reads is undefined, so that it costs nothing. One
 * serves any number of bodies, one after the other, because to create it takes as long as to read a short one. It holds
 * positions, and nothing of a body itself.
 */
export interface RequestBody {
  root: JsonSlot;
  model: RepeatedSlot;
  /** Whether it has a member that backends in Go take for `model` too. */
  hasOtherModel: () => boolean;
  /** The same limit under its names of different years and endpoints. */
  maxTokens: readonly RepeatedSlot[];
  stream: JsonSlot;
  /** Undefined if no usage is requested for streams, or the endpoint's have it anyway. */
  streamOptions: StreamOptions | undefined;
  /** Undefined unless the reasoning model is served, on an endpoint whose bodies have its options. */
  reasoning: ReasoningOptions | undefined;
  /** Undefined if no prefix may be due, also on endpoints whose bodies have no conversation. */
  conversation: ConversationSlots | undefined;
}

export interface StreamOptions {
  slot: JsonSlot;
  includeUsage: JsonSlot;
  continuousUsage: JsonSlot;
}

export interface ReasoningOptions {
  templateKwargs: TemplateKwargs;
  outputConfig: OutputConfig;
}

export interface TemplateKwargs {
  slot: JsonSlot;
  thinking: JsonSlot;
  /** The older name of `thinking`. */
  enableThinking: JsonSlot;
  reasoningEffort: JsonSlot;
}

export interface OutputConfig {
  slot: JsonSlot;
  effort: JsonSlot;
}

/** All of these are edited, because backends differ in which one they read. No client has a reason for more. */
const maxDuplicates = 64;

export function createRequestBody(endpoint: Endpoint, rules: RewriteRules): RequestBody {
  const [model, maxTokens, maxCompletionTokens, maxOutputTokens] = [
    createRepeatedSlot(maxDuplicates),
    createRepeatedSlot(maxDuplicates),
    createRepeatedSlot(maxDuplicates),
    createRepeatedSlot(maxDuplicates),
  ];
  const stream = createSlot();
  const members: Record<string, JsonSlot> = {
    model: model.slot,
    max_tokens: maxTokens.slot,
    max_completion_tokens: maxCompletionTokens.slot,
    max_output_tokens: maxOutputTokens.slot,
    stream,
  };
  const streamOptions = endpoint.streamOptions && rules.forceStreamUsage !== "off" ? createStreamOptions() : undefined;
  if (streamOptions !== undefined) members["stream_options"] = streamOptions.slot;
  const reasoning = endpoint.templateKwargs && isReasoningModelServed(rules) ? createReasoningOptions() : undefined;
  if (reasoning !== undefined) {
    members["chat_template_kwargs"] = reasoning.templateKwargs.slot;
    members["output_config"] = reasoning.outputConfig.slot;
  }
  const mayNeedPrefix = endpoint.system !== undefined && (reasoning !== undefined || rules.hanGuard);
  const conversation = mayNeedPrefix ? createConversationSlots() : undefined;
  if (conversation !== undefined) {
    members["messages"] = conversation.messages;
    members["system"] = conversation.system;
  }
  let hasOtherModel = false;
  const onOtherMember = (bytes: Uint8Array, start: number, end: number): void => {
    hasOtherModel ||= isNameInAnyCase(bytes, start, end, "model");
  };
  const repeated = [model, maxTokens, maxCompletionTokens, maxOutputTokens];
  const onStart = (): void => {
    hasOtherModel = false;
    for (const { clear } of repeated) clear();
    conversation?.clear();
  };
  return {
    root: createSlot({ members, onOtherMember, onStart }),
    model,
    hasOtherModel: () => hasOtherModel,
    maxTokens: [maxTokens, maxCompletionTokens, maxOutputTokens],
    stream,
    streamOptions,
    reasoning,
    conversation,
  };
}

export function hasTooManyDuplicates({ model, maxTokens }: RequestBody): boolean {
  return model.isOverflowing() || maxTokens.some((repeated) => repeated.isOverflowing());
}

function createStreamOptions(): StreamOptions {
  const includeUsage = createSlot();
  const continuousUsage = createSlot();
  const members = { include_usage: includeUsage, continuous_usage_stats: continuousUsage };
  return { slot: createSlot({ members }), includeUsage, continuousUsage };
}

const createReasoningOptions = (): ReasoningOptions => ({
  templateKwargs: createTemplateKwargs(),
  outputConfig: createOutputConfig(),
});

function createTemplateKwargs(): TemplateKwargs {
  const thinking = createSlot();
  const enableThinking = createSlot();
  const reasoningEffort = createSlot();
  const members = { thinking, enable_thinking: enableThinking, reasoning_effort: reasoningEffort };
  return { slot: createSlot({ members }), thinking, enableThinking, reasoningEffort };
}

function createOutputConfig(): OutputConfig {
  const effort = createSlot();
  return { slot: createSlot({ members: { effort } }), effort };
}
