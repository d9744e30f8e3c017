import { isNameInAnyCase, findNumber, findString, isLiteral } from "../json/bytes.ts";
import { createRepeatedSlot, createSlot, type JsonSlot, type RepeatedSlot, type JsonValue } from "../json/slots.ts";
import { type ConversationSlots, createConversationSlots } from "./conversation.ts";
import type { Endpoint } from "./endpoint.ts";
import { isReasoningModelServed, type OutputConfig, type TemplateKwargs } from "./model.ts";
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
  hasOtherModel: boolean;
  /** A member that would be edited comes more often than is kept. */
  hasTooManyDuplicates: () => boolean;
  /** The same limit under its names of different years and endpoints. */
  maxTokens: readonly RepeatedSlot[];
  /** Undefined on endpoints whose bodies have none. */
  thinkingBudget: ThinkingBudget | undefined;
  stream: JsonSlot;
  /** Undefined if no usage is requested for streams, or the endpoint's have it anyway. */
  streamOptions: StreamOptions | undefined;
  /** Undefined unless the reasoning model is served, on an endpoint whose bodies have its options. */
  reasoning: ReasoningOptions | undefined;
  /** Undefined if no prefix may be due, also on endpoints whose bodies have no conversation. */
  conversation: ConversationSlots | undefined;
}

/** `thinking` of the Messages API. */
export interface ThinkingBudget {
  slot: JsonSlot;
  type: JsonSlot;
  budgetTokens: JsonSlot;
}

export interface StreamOptions {
  all: RepeatedSlot;
  /** Members of the last of them. */
  includeUsage: RepeatedSlot;
  continuousUsage: JsonSlot;
}

interface ReasoningOptions {
  templateKwargs: TemplateKwargs;
  outputConfig: OutputConfig;
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
  const thinkingBudget = endpoint.thinkingBudget ? createThinkingBudget() : undefined;
  if (thinkingBudget !== undefined) members["thinking"] = thinkingBudget.slot;
  const streamOptions = endpoint.streamOptions && rules.forceStreamUsage !== "off" ? createStreamOptions() : undefined;
  if (streamOptions !== undefined) members["stream_options"] = streamOptions.all.slot;
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
  const onOtherMember = (bytes: Uint8Array, start: number, end: number): void => {
    body.hasOtherModel ||= isNameInAnyCase(bytes, start, end, "model");
  };
  const options = streamOptions === undefined ? [] : [streamOptions.all, streamOptions.includeUsage];
  const repeated = [model, maxTokens, maxCompletionTokens, maxOutputTokens, ...options];
  const onStart = (): void => {
    body.hasOtherModel = false;
    for (const { clear } of repeated) clear();
    conversation?.clear();
  };
  const body: RequestBody = {
    root: createSlot({ members, onOtherMember, onStart }),
    model,
    hasOtherModel: false,
    hasTooManyDuplicates() {
      for (const { isOverflowing } of repeated) if (isOverflowing) return true;
      return false;
    },
    maxTokens: [maxTokens, maxCompletionTokens, maxOutputTokens],
    thinkingBudget,
    stream,
    streamOptions,
    reasoning,
    conversation,
  };
  return body;
}

function createThinkingBudget(): ThinkingBudget {
  const type = createSlot();
  const budgetTokens = createSlot();
  return { slot: createSlot({ members: { type, budget_tokens: budgetTokens } }), type, budgetTokens };
}

function createStreamOptions(): StreamOptions {
  const includeUsage = createRepeatedSlot(maxDuplicates);
  const continuousUsage = createSlot();
  const members = { include_usage: includeUsage.slot, continuous_usage_stats: continuousUsage };
  return {
    all: createRepeatedSlot(maxDuplicates, { members, onStart: includeUsage.clear }),
    includeUsage,
    continuousUsage,
  };
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

/** Words that backends (pydantic, and so vLLM and SGLang) read as booleans, in any case. */
const trueWords = new Set(["1", "t", "true", "y", "yes", "on"]);
const falseWords = new Set(["0", "f", "false", "n", "no", "off"]);

export function isLenientTrue(bytes: Uint8Array, value: JsonValue): boolean {
  return isLiteral(bytes, value, "true") || findNumber(bytes, value) === 1 || isWord(bytes, value, trueWords);
}

export function isLenientFalse(bytes: Uint8Array, value: JsonValue): boolean {
  return isLiteral(bytes, value, "false") || findNumber(bytes, value) === 0 || isWord(bytes, value, falseWords);
}

export function isAbsentOrNull(bytes: Uint8Array, value: JsonValue): boolean {
  return value.kind === "absent" || isLiteral(bytes, value, "null");
}

function isWord(bytes: Uint8Array, value: JsonValue, words: ReadonlySet<string>): boolean {
  return words.has(findString(bytes, value)?.toLowerCase() ?? "");
}
