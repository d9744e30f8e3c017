// Adapts a client's JSON to the backend: the model's name, what certain clients send for certain engines, token caps,
// the family's reasoning mode, system prefixes and a stream's usage.
//
// It keeps true: only these values change; a body that is no JSON object is not changed, and one in which a backend may
// read what the rules could not is refused. A body of any length needs little memory: what is read of it are positions
// (`watched-members.ts`), and what no rule reads costs nothing. A request keeps the rules that it began with.
// Pure functions of a body, the rules and the client's name; they know no key and no connection. What goes round a rule
// of a key, because some engine reads it, is a row of `members-not-allowed.ts`. Removed: a reader for each of these.

import { findNotBlank, findPositiveInteger, isLiteral, isString, isUtf8 } from "../json/bytes.ts";
import { JsonEditor } from "../json/edit.ts";
import { createKnownBlocks, type Hash, type KnownBlocks } from "../json/known-blocks.ts";
import {
  eventLoopPortions,
  maxBlockBytes,
  type Party,
  readJsonInSteps,
  runByLength,
  type Steps,
} from "../json/read.ts";
import { braceOpen } from "../json/slots.ts";
import { type CapExemption, capTokensInSteps, stepBytes } from "./tokens.ts";
import { chooseClientRules, type ClientContext, type Mended, mendInSteps } from "./client-rules.ts";
import type { FirstMessage } from "./conversation-slots.ts";
import { type Endpoint, getEndpoint } from "./endpoint.ts";
import { setEngineMembers, setsEngineMembers } from "./engine-members.ts";
import { createRecall, discouragesHan, type Recall } from "./language.ts";
import type { Opening } from "./opening.ts";
import {
  createRequestBody,
  findNotAllowed,
  lastingMembers,
  needsOf,
  type RequestBody,
  type RequestedTexts,
  type RulesOfAll,
} from "./watched-members.ts";
import { type FoundMembers, noneFound } from "./members-not-allowed.ts";
import { createModelNames, rewriteModel } from "./model-names.ts";
import { fillTemplateKwargs, hasThinkingOff, reasoningMode } from "./reasoning-mode.ts";
import { type ForceUsage, noUsageAdded, requestsStream, requestUsage, type UsageAdded } from "./requested-stream.ts";
import type { Catalog, CurrentCatalog, DiscoveredModels, Target } from "../../domain/models.ts";
import type { RequestChange, RequestChanges, RequestedNames } from "../../domain/requests.ts";

export type { ClientContext } from "./client-rules.ts";

export interface RewriteRules extends RulesOfAll, Memory {}

/** What is remembered of bodies that came before; undefined: each is read anew. */
interface Memory {
  /** The backends that are llama.cpp, as far as is known. */
  readonly timed?: ReadonlySet<string> | undefined;
  readonly recall?: Recall | undefined;
  readonly knownBlocks?: KnownBlocks | undefined;
}

/** @param hash with a seed that no client knows */
export const createMemory = (hash: Hash): Memory => ({
  recall: createRecall(hash),
  knownBlocks: createKnownBlocks({ hash, seams: lastingMembers }),
});

/** What usage is requested of streams, by what the rules of a model say: the same, at least at their end, or none. */
export const streamUsages = {
  asSet: { off: "off", final: "final", continuous: "continuous" },
  required: { off: "final", final: "final", continuous: "continuous" },
  unasked: { off: "off", final: "off", continuous: "off" },
} as const satisfies Record<string, Record<ForceUsage, ForceUsage>>;

/** What is made of the catalog in use. */
export type CurrentRewriting = ReturnType<typeof createCurrentRewriting>;

export function createCurrentRewriting(current: CurrentCatalog, discovered?: DiscoveredModels, memory: Memory = {}) {
  const timed = new Set<string>();
  const create = (catalog: Catalog): Rewriting => createRewriting(catalog, discovered, { ...memory, timed });
  const rewriting = {
    latest: create(current.get()),
    /** Has streams of llama.cpp asked for their running counts, too. @param server the header of that name */
    learnServer(backend: string, server: string | null) {
      if (server?.startsWith("llama.cpp") === true) timed.add(backend);
      else timed.delete(backend);
    },
  };
  current.onReplaced((catalog) => {
    rewriting.latest = create(catalog);
  });
  return rewriting;
}

export type Rewriting = ReturnType<typeof createRewriting>;
export type Rewriters = Rewriting["plain"];

/** What is made of a catalog. A request keeps the one that it began with. */
function createRewriting(catalog: Catalog, discovered: DiscoveredModels | undefined, memory: Memory) {
  const names = createModelNames(catalog, discovered);
  /** The rules with and without the usage that we request of streams: a backend may refuse `stream_options`. */
  const rewriters = (streamUsage: RewriteRules["streamUsage"], hasKeyRules: boolean) => {
    const rules = { names, streamUsage, hasKeyRules, ...memory };
    return {
      /** Some requests are given `stream_options`. */
      mayAsk: needsOf(rules).streamOptions,
      asking: createRewriter(rules),
      unasked: createRewriter({ ...rules, streamUsage: streamUsages.unasked }),
    };
  };
  return {
    names,
    /** Stands for a body that is not read. */
    unread: { ...untouched, target: names.unnamed },
    /** The rules of a model depend on client, key and engine. */
    goesByClient: goesByClient(catalog) || setsEngineMembers(catalog),
    /** Those for keys with a limit of tokens: a stream that is not asked for its usage can only be estimated. */
    limited: rewriters(streamUsages.required, true),
    /** Those for keys with models that they may use, and no limit of tokens. */
    named: rewriters(streamUsages.asSet, true),
    plain: rewriters(streamUsages.asSet, false),
  };
}

/** Whether the rules of a model depend on client and engine. */
export const goesByClient = ({ models, otherModels }: Catalog): boolean =>
  [...models, otherModels].some(({ clientRules }) => clientRules === "auto");

export interface Rewritten {
  /** The body is one JSON object. */
  isObject: boolean;
  /** The body to send, in views of the original and what was inserted; undefined if nothing changed. */
  pieces: Uint8Array<ArrayBuffer>[] | undefined;
  /** The body requests a stream. */
  stream: boolean;
  /** The body says that others may come before it, as OpenAI's do. */
  isFlex?: boolean;
  usageAdded: UsageAdded;
  /** The client sent `stream_options`. */
  asksForUsage: boolean;
  /** Undefined if the body names no model. */
  model: RequestedNames | undefined;
  /** Where it may go, and what held for it. */
  target: Target;
  /** What was changed and why; undefined if nothing was. */
  changes?: RequestChanges | undefined;
  /** The output limit that is sent; undefined if the body has none. */
  maxTokens: number | undefined;
  /** The member that has it, if that is not `max_tokens`. */
  maxTokensName?: string | undefined;
  /** How many texts the body asks for, each of which may be as long as that. Read for keys with rules only. */
  times: number;
  /** How many prompts it has. Read for keys with rules only. */
  prompts: number;
  /** Why the usual cap does not apply; undefined if it does. */
  capExemption: CapExemption | undefined;
  /** What goes round a rule of the key; nothing for keys without such rules. */
  notAllowed: FoundMembers;
  /** What it makes may be asked for later. */
  isStored: boolean;
  /** See `Mended`. */
  marksFullContext?: boolean | undefined;
  /** Undefined if there is one backend. */
  opening?: Opening | undefined;
}

/** A body that must not be forwarded, because the backend may read in it what the rules could not. */
interface RefusedBody {
  refused: "too_many_duplicates" | "not_utf8";
}

/** Stands for a body that is not changed, and of which nothing is known. */
const untouched: Omit<Rewritten, "target"> = {
  isObject: false,
  pieces: undefined,
  stream: false,
  usageAdded: noUsageAdded,
  asksForUsage: false,
  model: undefined,
  maxTokens: undefined,
  times: 1,
  prompts: 1,
  capExemption: undefined,
  notAllowed: noneFound,
  isStored: true,
};

/**
 * @param path the URL's pathname, such as `/v1/chat/completions`
 * @param client undefined: one that `auto` knows nothing of
 * @returns a promise for a body that takes long, which is read in portions so that no other request waits for it
 */
export type RewriteRequest = (
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
  client?: ClientContext,
  party?: Party,
) => Rewritten | RefusedBody | Promise<Rewritten | RefusedBody>;

export function createRewriter(rules: RewriteRules, portions = eventLoopPortions): RewriteRequest {
  /** Bodies that are read at once share these, because only one is read at a time. */
  const bodies = new Map<Endpoint, RequestBody>();
  const needs = needsOf(rules);

  return (path, bytes, client, party) => {
    const endpoint = getEndpoint(path);
    const body = bodies.get(endpoint) ?? createRequestBody(endpoint, needs);
    const rewritten = runByLength(rewriteInSteps(endpoint, bytes, body, rules, client), bytes.length, party, portions);
    // Between portions, others are read.
    if (rewritten instanceof Promise) bodies.delete(endpoint);
    else bodies.set(endpoint, body);
    return rewritten;
  };
}

/** @param body to read it into */
export function* rewriteInSteps(
  endpoint: Endpoint,
  bytes: Uint8Array<ArrayBuffer>,
  body: RequestBody,
  rules: RewriteRules,
  client?: ClientContext,
): Steps<Rewritten | RefusedBody> {
  const { names, streamUsage, recall, timed = noBackends } = rules;
  if (isUtf16Or32(bytes) && endpoint.takesJson) return { refused: "not_utf8" };
  const readKnown = bytes.length > maxBlockBytes ? rules.knownBlocks?.(body.shape) : undefined;
  const isJson = yield* readJsonInSteps(bytes, body.root, readKnown);
  if (!isJson && endpoint.takesJson && !isUtf8(bytes) && (yield* beginsObjectInSteps(bytes))) {
    return { refused: "not_utf8" };
  }
  if (!isJson || body.root.kind !== "object") return { ...untouched, target: names.unnamed };
  for (const { isOverflowing } of body.repeated) if (isOverflowing) return { refused: "too_many_duplicates" };

  const editor = new JsonEditor();
  const kinds: RequestChange[] = [];
  const named = rewriteModel(editor, bytes, body.model.values, names);
  const target = named?.target ?? names.unnamed;
  const { rules: held, candidates } = target;
  if (editor.edits.length > 0) kinds.push("model");
  const isFlex = isString(bytes, body.serviceTier, "flex");
  if (body.engineMembers !== undefined) {
    const priority = isFlex ? "low" : client?.priority;
    const request = { target, takesJson: endpoint.takesJson, client, priority };
    setEngineMembers(editor, bytes, body.root, body.engineMembers, names.catalog, request);
  }
  let mended: Mended | undefined;
  if (held.clientRules.length > 0) {
    const due = chooseClientRules(held.clientRules, client, candidates);
    mended = yield* mendInSteps(editor, bytes, endpoint, due);
    kinds.push(...mended.kinds);
  }
  const capped = yield* capTokensInSteps(editor, bytes, body, held);
  if (capped.lowered !== undefined) kinds.push("max_tokens");
  let isMaximum = false;
  if (body.reasoning !== undefined && held.reasoning) {
    const { templateKwargs, outputConfig } = body.reasoning;
    const mode = reasoningMode(bytes, outputConfig, named?.target.nonThinking === true);
    if (fillTemplateKwargs(editor, bytes, body.root, templateKwargs, mode)) kinds.push("thinking");
    isMaximum = mode === "max" && !hasThinkingOff(bytes, templateKwargs);
  }
  const guard = held.hanGuard ? { recall } : undefined;
  kinds.push(...prefixSystem(editor, bytes, body, { system: endpoint.system, isMaximum, guard, first: mended?.first }));
  const before = editor.edits.length;
  const stream = requestsStream(bytes, body.stream);
  let usageAdded = noUsageAdded;
  if (stream && body.streamOptions !== undefined) {
    const isTimed = timed.size > 0 && candidates.every((name) => timed.has(name));
    const how = { force: streamUsage[held.forceStreamUsage], isTimed, givenN: body.texts?.n.values[0] };
    usageAdded = requestUsage(editor, bytes, body.root, body.streamOptions, how);
  }
  if (editor.edits.length > before) kinds.push("stream_usage");
  const changes = kinds.length === 0 ? undefined : { kinds, maxTokens: capped.lowered };
  return {
    isObject: true,
    pieces: editor.apply(bytes),
    stream,
    isFlex,
    usageAdded,
    asksForUsage: body.givenOptions?.kind === "object",
    model: named?.model,
    target,
    changes,
    maxTokens: body.texts?.ofRequests ?? capped.largest,
    maxTokensName: capped.largestName,
    ...countTexts(bytes, body.texts),
    capExemption: capped.exemption,
    notAllowed: findNotAllowed(bytes, endpoint, body),
    isStored: body.store === undefined || !isLiteral(bytes, body.store, "false"),
    marksFullContext: mended?.marksFullContext,
    ...(body.opening !== undefined && { opening: body.opening.read(bytes, body.conversation?.system) }),
  };
}

const noBackends: ReadonlySet<string> = new Set();

type Texts = Pick<Rewritten, "times" | "prompts">;

const oneText: Texts = { times: 1, prompts: 1 };

/** A backend generates `best_of` texts to return `n`, for each of its prompts. One that comes twice is refused. */
function countTexts(bytes: Uint8Array, texts: RequestedTexts | undefined): Texts {
  if (texts === undefined) return oneText;
  const prompts = Math.max(1, texts.prompts);
  let choices = 1;
  for (const [value] of [texts.n.values, texts.bestOf.values])
    if (value !== undefined) choices = Math.max(choices, findPositiveInteger(bytes, value) ?? 1);
  return { times: prompts * choices, prompts };
}

/** Detects them as Python's json module does: by a byte order mark, or by a zero among the first two bytes. */
const isUtf16Or32 = ({ length, 0: first, 1: second }: Uint8Array): boolean =>
  length > 1 &&
  (first === 0 || second === 0 || (first === 0xfe && second === 0xff) || (first === 0xff && second === 0xfe));

/** Blanks of any kind may stand before it: all of a body, in steps of a tenth of a millisecond. */
function* beginsObjectInSteps(bytes: Uint8Array): Steps<boolean> {
  for (let at = 0; at < bytes.length; at += stepBytes) {
    const first = findNotBlank(bytes.subarray(at, at + stepBytes));
    if (first !== undefined) return first === braceOpen;
    yield;
  }
  return false;
}

interface PrefixReasons {
  system: Endpoint["system"];
  /** The most effort is asked for. */
  isMaximum: boolean;
  /** Undefined if the model has no Han guard. */
  guard: { recall: Recall | undefined } | undefined;
  /** The message that will be the first, if it is none of those that came. */
  first: FirstMessage | undefined;
}

/**
 * Adds the prefixes that are due to the system text: a leading system or developer message of a chat, or a new one; a member
 * of its own in a messages body.
 */
function prefixSystem(
  editor: JsonEditor,
  bytes: Uint8Array,
  body: RequestBody,
  { system, isMaximum, guard, first: made }: PrefixReasons,
): readonly RequestChange[] {
  const { conversation } = body;
  // The backend refuses a body without a conversation.
  if (conversation === undefined || conversation.first.value.kind === "absent") return [];
  const kinds: (keyof typeof prefixes)[] = isMaximum ? ["system_prompt_effort"] : [];
  const discourages = guard !== undefined && discouragesHan(conversation.list(bytes), guard.recall);
  if (discourages) kinds.push("system_prompt_language");
  const [one, other] = kinds;
  if (one === undefined) return [];
  const text = other === undefined ? prefixes[one] : prefixes[one] + separator + prefixes[other];
  const first = made ?? conversation.first;
  if (system === "message" && !first.isSystem) {
    editor.prependElement(conversation.messages, JSON.stringify({ role: "system", content: text }));
    return kinds;
  }
  const isMember = system === "member";
  const owner = isMember ? body.root : first.value;
  const given = isMember ? conversation.system : first.content;
  if (given.kind === "absent") editor.addMember(owner, isMember ? "system" : "content", JSON.stringify(text));
  else if (given.kind === "string") editor.prependText(given, text, separator);
  // Backends join parts without a separator, so the empty line is in the part.
  else if (given.kind === "array")
    editor.prependElement(given, JSON.stringify({ type: "text", text: text + separator }));
  else if (isLiteral(bytes, given, "null")) editor.replace(given, JSON.stringify(text));
  else return [];
  return kinds;
}

export const maximumEffortPrefix =
  "Reasoning effort: maximum. Before you answer, think the task through to the end: split it into parts, test every " +
  "assumption, weigh alternatives, look for edge cases, and verify each step and the final result. Never shorten the " +
  "reasoning to save time or tokens.";

export const hanGuardPrefix =
  "Write in the language of the conversation, and use no Chinese characters (Han ideographs) in your reasoning or your " +
  "answer. Exceptions: quotations, code, file contents and names that contain them, and anything the user explicitly " +
  "wants in them.";

const prefixes = { system_prompt_effort: maximumEffortPrefix, system_prompt_language: hanGuardPrefix };
const separator = "\n\n";
