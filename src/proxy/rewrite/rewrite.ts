import { capTokens, cappedMembers } from "./caps.ts";
import { listMessages, messagesShape, systemShape } from "./conversation.ts";
import { type Endpoint, getEndpoint } from "./endpoint.ts";
import { createJsonEditor, type JsonEditor } from "../json/edit.ts";
import {
  findMember,
  findString,
  isLiteral,
  type JsonObjectNode,
  listMembers,
  objectShape,
  readJson,
  type Shape,
} from "../json/read.ts";
import { discouragesHan } from "./language.ts";
import { isReasoningModelServed, resolveModel } from "./model-name.ts";
import { fillTemplateKwargs, hasThinkingOff, reasoningMode, type ReasoningMode } from "./reasoning.ts";
import type { RewriteRules } from "./rules.ts";
import { requestUsage, noUsageAdded, type UsageAdded } from "./stream-options.ts";
import { hanGuardPrefix, maximumEffortPrefix, prefixChat, prefixMessages } from "./system-prefix.ts";

export type { RewriteRules } from "./rules.ts";

export interface Rewritten {
  /** The body to send; undefined if nothing changed and the original bytes are to be sent. */
  body: string | undefined;
  /** The body has `"stream": true`. */
  stream: boolean;
  usageAdded: UsageAdded;
}

const value: Shape = {};
const everyBody = {
  model: value,
  stream: value,
  stream_options: objectShape({ include_usage: value, continuous_usage_stats: value }),
  chat_template_kwargs: objectShape({ thinking: value, enable_thinking: value, reasoning_effort: value }),
  output_config: objectShape({ effort: value }),
  ...Object.fromEntries(cappedMembers.map((name) => [name, value])),
};
const shapes = {
  conversation: objectShape({ ...everyBody, messages: messagesShape, system: systemShape }),
  other: objectShape(everyBody),
};

/**
 * Adapts a client's JSON to the backend: the model's name, token caps, the family's reasoning mode, system prefixes and a
 * stream's usage. Only these values change; a body that is not a JSON object is not changed.
 * @param path the URL's pathname, such as `/v1/chat/completions`
 */
export function rewriteRequest(path: string, body: string, rules: RewriteRules): Rewritten {
  const endpoint = getEndpoint(path);
  const root = readJson(body, endpoint.system === undefined ? shapes.other : shapes.conversation);
  if (root?.kind !== "object") return { body: undefined, stream: false, usageAdded: noUsageAdded };

  const editor = createJsonEditor(body);
  const nonThinking = rewriteModel(editor, body, root, rules);
  capTokens(editor, body, root, rules);
  const mode = isReasoningModelServed(rules) ? reasoningMode(body, root, nonThinking) : undefined;
  if (mode !== undefined && endpoint.templateKwargs) fillTemplateKwargs(editor, body, root, mode);
  prefixSystem(editor, body, root, { endpoint, mode, hanGuard: rules.hanGuard });
  const stream = isLiteral(body, findMember(root, "stream"), "true");
  const canRequest = stream && endpoint.streamOptions;
  const usageAdded = canRequest ? requestUsage(editor, body, root, rules.forceStreamUsage) : noUsageAdded;
  return { body: editor.result(), stream, usageAdded };
}

/** Rewrites every `model`. @returns whether the last one, which backends use, is a non-thinking name */
function rewriteModel(editor: JsonEditor, body: string, root: JsonObjectNode, rules: RewriteRules): boolean {
  let nonThinking = false;
  for (const node of listMembers(root, "model")) {
    const submitted = findString(body, node);
    const model = submitted === undefined ? undefined : resolveModel(submitted, rules);
    if (model !== undefined && model.name !== submitted) editor.replace(node, JSON.stringify(model.name));
    nonThinking = model?.nonThinking ?? false;
  }
  return nonThinking;
}

interface PrefixReasons {
  endpoint: Endpoint;
  /** Undefined if the family is not live. */
  mode: ReasoningMode | undefined;
  hanGuard: boolean;
}

function prefixSystem(editor: JsonEditor, body: string, root: JsonObjectNode, reasons: PrefixReasons): void {
  const { endpoint, mode, hanGuard } = reasons;
  const messages = findMember(root, "messages");
  // The backend refuses a body without a conversation.
  if (endpoint.system === undefined || messages?.kind !== "array" || messages.elements.length === 0) return;
  const prefixes: string[] = [];
  if (mode === "max" && !hasThinkingOff(body, root)) prefixes.push(maximumEffortPrefix);
  if (hanGuard && discouragesHan(listMessages(body, root))) prefixes.push(hanGuardPrefix);
  if (prefixes.length === 0) return;
  if (endpoint.system === "message") prefixChat(editor, body, root, prefixes);
  else prefixMessages(editor, body, root, prefixes);
}
