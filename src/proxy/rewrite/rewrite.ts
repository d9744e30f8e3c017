import { contentOf, decodeHead, decodeTail, findString } from "../json/bytes.ts";
import { createJsonEditor, type JsonEditor } from "../json/edit.ts";
import { readJsonInSteps, eventLoopPortions, runAtOnce, runInPortions, type Steps } from "../json/read.ts";
import type { JsonValue } from "../json/slots.ts";
import { type CapExemption, capTokensInSteps, largestOf } from "./caps.ts";
import { type Endpoint, getEndpoint } from "./endpoint.ts";
import { discouragesHan } from "./language.ts";
import { isAbsentOrNull, isLenientFalse, createRequestBody, type RequestBody } from "./request-body.ts";
import { resolveModel, fillTemplateKwargs, hasThinkingOff, reasoningMode, type ReasoningMode } from "./model.ts";
import type { RewriteRules } from "./rules.ts";
import { noUsageAdded, requestUsage, type UsageAdded } from "./stream-options.ts";
import { hanGuardPrefix, maximumEffortPrefix, prefixChat, prefixMessages } from "./system-prefix.ts";
import type { RequestChange, RequestChanges } from "../../domain/requests.ts";

export type { RewriteRules } from "./rules.ts";

export interface Rewritten {
  /** The body is one JSON object. */
  isObject: boolean;
  /** The body to send, in views of the original and what was inserted; undefined if nothing changed. */
  pieces: Uint8Array<ArrayBuffer>[] | undefined;
  /** The body requests a stream. */
  stream: boolean;
  usageAdded: UsageAdded;
  /** The client sent `stream_options`. */
  asksForUsage: boolean;
  /** Undefined if the body names no model. */
  model: ModelNames | undefined;
  /** What was changed and why; undefined if nothing was. */
  changes?: RequestChanges | undefined;
  /** The output limit that is sent; undefined if the body has none. */
  maxTokens: number | undefined;
  /** The same under a name in another case, which only some backends read. */
  maxTokensInOtherCase: number | undefined;
  /** How many texts the body asks for, each of which may be as long as that. Read for limits of tokens only. */
  times: number;
  /** How many prompts it has. Read for limits of tokens only. */
  prompts: number;
  /** Why the usual cap does not apply; undefined if it does. */
  capExemption: CapExemption | undefined;
  /** The body names a model more than once, or in a member whose name backends in Go take for `model` too: `Model`. */
  hasSeveralModels: boolean;
}

export interface ModelNames {
  /** By the client. */
  asked: string;
  /** To the backend. */
  sent: string;
}

/** A body that must not be forwarded, because the backend may read in it what the rules could not. */
export interface RefusedBody {
  refused: "too_many_duplicates" | "not_utf8";
}

/** Stands for a body that is not changed, and of which nothing is known. */
export const untouched: Rewritten = {
  isObject: false,
  pieces: undefined,
  stream: false,
  usageAdded: noUsageAdded,
  asksForUsage: false,
  model: undefined,
  maxTokens: undefined,
  maxTokensInOtherCase: undefined,
  times: 1,
  prompts: 1,
  capExemption: undefined,
  hasSeveralModels: false,
};

/** Takes a few milliseconds. */
const maxBytesAtOnce = 256 * 1024;

/**
 * Adapts a client's JSON to the backend: the model's name, token caps, the family's reasoning mode, system prefixes and a
 * stream's usage. Only these values change; a body that is not a JSON object is not changed. Needs little memory for a body
 * of any length.
 * @param path the URL's pathname, such as `/v1/chat/completions`
 * @returns a promise for a long body, which is read in portions so that no other request waits for it
 */
export type RewriteRequest = (
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
) => Rewritten | RefusedBody | Promise<Rewritten | RefusedBody>;

export function createRewriter(rules: RewriteRules, portions = eventLoopPortions): RewriteRequest {
  /** Short bodies share these, because only one is read at a time. */
  const bodies = new Map<Endpoint, RequestBody>();

  return (path, bytes) => {
    const endpoint = getEndpoint(path);
    if (bytes.length > maxBytesAtOnce) {
      return runInPortions(rewriteInSteps(endpoint, bytes, createRequestBody(endpoint, rules), rules), portions);
    }
    const body = bodies.get(endpoint) ?? createRequestBody(endpoint, rules);
    bodies.set(endpoint, body);
    return runAtOnce(rewriteInSteps(endpoint, bytes, body, rules));
  };
}

/** @param body to read it into */
export function* rewriteInSteps(
  endpoint: Endpoint,
  bytes: Uint8Array<ArrayBuffer>,
  body: RequestBody,
  rules: RewriteRules,
): Steps<Rewritten | RefusedBody> {
  if (isUtf16Or32(bytes)) return endpoint.takesJson ? { refused: "not_utf8" } : untouched;
  const isJson = yield* readJsonInSteps(bytes, body.root);
  if (!isJson || body.root.kind !== "object") return untouched;
  if (body.hasTooManyDuplicates()) return { refused: "too_many_duplicates" };

  const editor = createJsonEditor();
  const kinds: RequestChange[] = [];
  let counted = 0;
  /** Notes the change if there were edits since the last call. */
  const note = (kind: RequestChange): void => {
    if (editor.edits.length > counted) kinds.push(kind);
    counted = editor.edits.length;
  };
  const { model, nonThinking } = rewriteModel(editor, bytes, body.model.values, rules);
  note("model");
  const capped = yield* capTokensInSteps(editor, bytes, body, rules);
  note("max_tokens");
  let mode: ReasoningMode | undefined;
  if (body.reasoning !== undefined) {
    mode = reasoningMode(bytes, body.reasoning.outputConfig, nonThinking);
    fillTemplateKwargs(editor, bytes, body.root, body.reasoning.templateKwargs, mode);
  }
  note("thinking");
  kinds.push(...prefixSystem(editor, bytes, body, { endpoint, mode, hanGuard: rules.hanGuard }));
  counted = editor.edits.length;
  const stream = !isAbsentOrNull(bytes, body.stream) && !isLenientFalse(bytes, body.stream);
  const usageAdded =
    stream && body.streamOptions !== undefined
      ? requestUsage(editor, bytes, body.root, body.streamOptions, rules.forceStreamUsage)
      : noUsageAdded;
  note("stream_usage");
  const changes = kinds.length === 0 ? undefined : { kinds, maxTokens: capped.lowered };
  const hasSeveralModels = body.model.values.length > 1 || body.hasOtherModel;
  return {
    isObject: true,
    pieces: editor.apply(bytes),
    stream,
    usageAdded,
    asksForUsage: body.givenOptions !== undefined && !isAbsentOrNull(bytes, body.givenOptions),
    model,
    changes,
    maxTokens: capped.largest,
    maxTokensInOtherCase: capped.largestInOtherCase,
    ...countTexts(bytes, body),
    capExemption: capped.exemption,
    hasSeveralModels,
  };
}

/** A backend generates `best_of` texts to return `n`, for each of its prompts. */
function countTexts(bytes: Uint8Array, { texts }: RequestBody): Pick<Rewritten, "times" | "prompts"> {
  const prompts = Math.max(1, texts?.prompts ?? 1);
  const choices = largestOf(bytes, texts === undefined ? [] : [...texts.n.values, ...texts.bestOf.values]) ?? 1;
  return { times: prompts * choices, prompts };
}

/** Detects them as Python's json module does: by a byte order mark, or by a zero among the first two bytes. */
function isUtf16Or32(bytes: Uint8Array): boolean {
  const first = bytes[0];
  const second = bytes[1];
  if (first === undefined || second === undefined) return false;
  return first === 0 || second === 0 || (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe);
}

interface RewrittenModel {
  model: ModelNames | undefined;
  nonThinking: boolean;
}

/** Rewrites every `model`. @returns what became of the last one, which backends use */
function rewriteModel(
  editor: JsonEditor,
  bytes: Uint8Array,
  values: readonly JsonValue[],
  rules: RewriteRules,
): RewrittenModel {
  let last: RewrittenModel = { model: undefined, nonThinking: false };
  for (const value of values) {
    const submitted = findModelName(bytes, value);
    const resolved = submitted === undefined ? undefined : resolveModel(submitted, rules);
    if (resolved !== undefined && resolved.name !== submitted) editor.replace(value, JSON.stringify(resolved.name));
    last = {
      model: submitted === undefined ? undefined : { asked: submitted, sent: resolved?.name ?? submitted },
      nonThinking: resolved?.nonThinking ?? false,
    };
  }
  return last;
}

/** No rule looks at more of a name. */
const maxAffixLength = 1024;

/** Undefined if it is not a string. The middle of a name of more than 64 KiB is left out. */
function findModelName(bytes: Uint8Array, value: JsonValue): string | undefined {
  if (value.kind !== "string") return undefined;
  const name = findString(bytes, value);
  if (name !== undefined) return name;
  const content = contentOf(value);
  return decodeHead(bytes, content, maxAffixLength) + decodeTail(bytes, content, maxAffixLength);
}

interface PrefixReasons {
  endpoint: Endpoint;
  /** Undefined if the reasoning model is not served. */
  mode: ReasoningMode | undefined;
  hanGuard: boolean;
}

function prefixSystem(
  editor: JsonEditor,
  bytes: Uint8Array,
  body: RequestBody,
  reasons: PrefixReasons,
): readonly RequestChange[] {
  const { endpoint, mode, hanGuard } = reasons;
  const { root, conversation, reasoning } = body;
  // The backend refuses a body without a conversation.
  if (conversation?.findFirst() === undefined) return [];
  const kinds: RequestChange[] = [];
  const prefixes: string[] = [];
  if (mode === "max" && reasoning !== undefined && !hasThinkingOff(bytes, reasoning.templateKwargs)) {
    kinds.push("system_prompt_effort");
    prefixes.push(maximumEffortPrefix);
  }
  if (hanGuard && discouragesHan(conversation.list(bytes))) {
    kinds.push("system_prompt_language");
    prefixes.push(hanGuardPrefix);
  }
  if (kinds.length === 0) return [];
  const before = editor.edits.length;
  if (endpoint.system === "message") prefixChat(editor, bytes, conversation, prefixes);
  else prefixMessages(editor, bytes, root, conversation, prefixes);
  return editor.edits.length > before ? kinds : [];
}
