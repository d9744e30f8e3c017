import { createRepeatedSlot, createSlot, type JsonSlot, type RepeatedSlot } from "../json/slots.ts";
import { type ConversationSlots, createConversationSlots } from "./conversation.ts";
import type { Endpoint } from "./endpoint.ts";

/** The members of a request's body that rules read or edit. */
export interface RequestBody {
  root: JsonSlot;
  model: RepeatedSlot;
  /** The same limit under its names of different years and endpoints. */
  maxTokens: readonly RepeatedSlot[];
  stream: JsonSlot;
  streamOptions: StreamOptions;
  templateKwargs: TemplateKwargs;
  outputConfig: OutputConfig;
  /** Undefined on endpoints whose bodies have none. */
  conversation: ConversationSlots | undefined;
}

export interface StreamOptions {
  slot: JsonSlot;
  includeUsage: JsonSlot;
  continuousUsage: JsonSlot;
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

export function createRequestBody(bytes: Uint8Array, endpoint: Endpoint): RequestBody {
  const [model, maxTokens, maxCompletionTokens, maxOutputTokens] = [
    createRepeatedSlot(maxDuplicates),
    createRepeatedSlot(maxDuplicates),
    createRepeatedSlot(maxDuplicates),
    createRepeatedSlot(maxDuplicates),
  ];
  const stream = createSlot();
  const streamOptions = createStreamOptions();
  const templateKwargs = createTemplateKwargs();
  const outputConfig = createOutputConfig();
  const conversation = endpoint.system === undefined ? undefined : createConversationSlots(bytes);
  const root = createSlot({
    members: {
      model: model.slot,
      max_tokens: maxTokens.slot,
      max_completion_tokens: maxCompletionTokens.slot,
      max_output_tokens: maxOutputTokens.slot,
      stream,
      stream_options: streamOptions.slot,
      chat_template_kwargs: templateKwargs.slot,
      output_config: outputConfig.slot,
      ...(conversation === undefined ? {} : { messages: conversation.messages, system: conversation.system }),
    },
  });
  return {
    root,
    model,
    maxTokens: [maxTokens, maxCompletionTokens, maxOutputTokens],
    stream,
    streamOptions,
    templateKwargs,
    outputConfig,
    conversation,
  };
}

export function hasTooManyDuplicates({ model, maxTokens }: RequestBody): boolean {
  return [model, ...maxTokens].some((repeated) => repeated.isOverflowing());
}

function createStreamOptions(): StreamOptions {
  const includeUsage = createSlot();
  const continuousUsage = createSlot();
  const members = { include_usage: includeUsage, continuous_usage_stats: continuousUsage };
  return { slot: createSlot({ members }), includeUsage, continuousUsage };
}

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
