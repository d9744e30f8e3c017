import { randomUUID } from "node:crypto";
import { isObject, type JsonObject } from "./simulated-response.ts";
import { countTokens, type GeneratedText } from "./text.ts";
import { findToolCall, type ToolCall } from "./tools.ts";
import type { Usage } from "../../../src/domain/usage.ts";

/** What the simulated model is like. */
export interface ModelOptions {
  /** The served models; any other name gets 404, as from a real backend. Empty: every name is served. */
  models: readonly string[];
  /** Output tokens if the request sets no limit. */
  defaultOutputTokens: number;
  /** The model stops here, whatever limit the request sets. */
  maxOutputTokens: number;
  maxModelLen: number;
  /** Calls a tool if the request offers any. */
  callsTools: boolean;
}

export const defaultModel: ModelOptions = {
  models: [],
  defaultOutputTokens: 64,
  maxOutputTokens: Infinity,
  maxModelLen: 202_752,
  callsTools: true,
};

/** What is wanted of one response, beside what its request says. */
export interface Wanted {
  tokens?: number;
  /** The usage to report, if it differs from what was counted. */
  usage?: Usage | undefined;
  usageMode?: "none" | "null";
  noDone?: boolean;
  hugeTokenBytes?: number;
  /** Endless tokens. */
  flood?: boolean;
}

/** What the model generates for one request, read from what all dialects have in common. */
export interface Generation extends GeneratedText {
  /** The request's body. */
  body: JsonObject;
  model: string;
  /** 32 hexadecimal digits; each dialect adds its own prefix. */
  id: string;
  /** Seconds since the epoch. */
  created: number;
  inputTokens: number;
  /** Whether the client's limit ends the output, rather than the model itself. */
  hitsLimit: boolean;
  usage: Usage | undefined;
  /** "none" omits the usage, "null" sends `null` for it. */
  usageMode: "reported" | "none" | "null";
  /** Whether a stream ends with `data: [DONE]`, in the dialects that have it. */
  sendsDone: boolean;
  /** What it generates instead of text. */
  call: ToolCall | undefined;
}

export function planGeneration(body: JsonObject, model: string, wanted: Wanted, options: ModelOptions): Generation {
  const limit = wanted.tokens ?? findLimit(body);
  const endless = wanted.flood === true && body["stream"] === true;
  const outputTokens = endless ? Infinity : Math.min(limit ?? options.defaultOutputTokens, options.maxOutputTokens);
  return {
    body,
    model,
    id: randomUUID().replaceAll("-", ""),
    created: Math.floor(Date.now() / 1000),
    inputTokens: Math.max(1, countTokens(promptMembers.map((name) => body[name]))),
    outputTokens,
    thinkingTokens: thinkingTokensOf(body, outputTokens),
    hugeTokenBytes: wanted.hugeTokenBytes,
    hitsLimit: limit === outputTokens,
    usage: wanted.usage,
    usageMode: wanted.usageMode ?? "reported",
    sendsDone: wanted.noDone !== true,
    call: options.callsTools ? findToolCall(body) : undefined,
  };
}

const promptMembers = ["messages", "prompt", "input", "system", "instructions", "tools"];

/** The output limit that the request sets, whatever number it is. */
export function findLimit(body: JsonObject): number | undefined {
  const limit = body["max_completion_tokens"] ?? body["max_tokens"] ?? body["max_output_tokens"];
  return typeof limit === "number" ? limit : undefined;
}

/** Half of the output, or three quarters at maximum effort, within the request's thinking budget. */
function thinkingTokensOf(body: JsonObject, outputTokens: number): number {
  const template = isObject(body["chat_template_kwargs"]) ? body["chat_template_kwargs"] : {};
  if ((template["thinking"] ?? template["enable_thinking"]) !== true || outputTokens < 4) return 0;
  const share = template["reasoning_effort"] === "max" ? 0.75 : 0.5;
  const budget = isObject(body["thinking"]) ? body["thinking"]["budget_tokens"] : undefined;
  return Math.max(2, Math.min(Math.floor(outputTokens * share), typeof budget === "number" ? budget : Infinity));
}

export function usageOf(generation: Generation): Usage {
  return generation.usage ?? { inputTokens: generation.inputTokens, outputTokens: generation.outputTokens };
}

/** What of the input came from a cache; undefined: that is not reported. */
export const findCached = ({ cachedInputTokens }: Usage): number | undefined => cachedInputTokens;
