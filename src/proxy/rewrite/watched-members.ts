import { defaultOutputTokens } from "../../domain/admissions.ts";
import { findPositiveInteger } from "../json/bytes.ts";
import { createRepeatedSlot, createSlot, type JsonSlot, type RepeatedSlot, type SlotOptions } from "../json/slots.ts";
import { createConversationSlots } from "./conversation-slots.ts";
import { createOpeningSlots } from "./opening.ts";
import type { Endpoint } from "./endpoint.ts";
import { createEngineMembers, setsEngineMembers } from "./engine-members.ts";
import {
  addFound,
  findMemberName,
  type FoundMembers,
  isOneNumber,
  type MemberName,
  memberRows,
  noneFound,
} from "./members-not-allowed.ts";
import { createOutputConfig, createTemplateKwargs } from "./reasoning-mode.ts";
import type { ModelNames } from "./model-names.ts";
import { createStreamOptions, type ForceUsage, isLenientBoolean } from "./requested-stream.ts";

/** What multiplies the output. */
export type RequestedTexts = ReturnType<typeof watchTexts>;
export type ThinkingBudget = ReturnType<typeof createThinkingBudget>;

/** What clients send again with each turn of a conversation, mostly behind its messages, to which each turn adds some. */
export const lastingMembers: readonly string[] = ['"system":', '"tools":'];

/** All of these are edited, because backends differ in which one they read. No client has a reason for more. */
const maxDuplicates = 64;
const newRepeated = (): RepeatedSlot => createRepeatedSlot(maxDuplicates);

/** What holds for the requests of all models, and how the rules of each are found. */
export interface RulesOfAll {
  readonly names: ModelNames;
  /** One of `streamUsages`. */
  readonly streamUsage: Readonly<Record<ForceUsage, ForceUsage>>;
  /** They are for keys with limits of tokens or models: how many texts a body asks for is read, and what goes round these. */
  readonly hasKeyRules: boolean;
}

/** Which members of a body the rules of any model may read. */
export function needsOf({ names, streamUsage, hasKeyRules }: RulesOfAll) {
  const { models, otherModels, backends } = names.catalog;
  const all = [...models, otherModels];
  return {
    streamOptions: all.some((one) => streamUsage[one.forceStreamUsage] !== "off"),
    reasoning: all.some(({ reasoning }) => reasoning),
    hanGuard: all.some(({ hanGuard }) => hanGuard),
    keyRules: hasKeyRules,
    /** There are backends to choose from, of which one may have cached the opening. */
    opening: backends.length > 1 || backends.some(({ maxPrefillTokens }) => maxPrefillTokens !== undefined),
    engineMembers: setsEngineMembers(names.catalog),
  };
}

export type RequestBody = ReturnType<typeof createRequestBody>;

/**
 * The members of a request's body that rules read or edit. What no rule reads is undefined, so that it costs nothing. One
 * serves any number of bodies, one after the other, because to create it takes as long as to read a short one. It holds
 * positions, and nothing of a body itself.
 */
export function createRequestBody(endpoint: Endpoint, needs: ReturnType<typeof needsOf>) {
  const [stream, serviceTier, maxTokensInOtherCase] = [createSlot(), createSlot(), newRepeated()];
  const members: Record<string, JsonSlot> = { stream, service_tier: serviceTier };
  const repeated = [maxTokensInOtherCase];
  const watch = (name: string): RepeatedSlot => {
    const values = newRepeated();
    repeated.push(values);
    members[name] = values.slot;
    return values;
  };
  const model = watch("model");
  const maxTokens = maxTokensNames.map(watch);
  const engineMembers = needs.engineMembers ? createEngineMembers(maxDuplicates) : undefined;
  for (const [name, given] of engineMembers ?? []) {
    members[name] = given[0].slot;
    repeated.push(...given);
  }
  const store = endpoint.folder === "responses" ? createSlot() : undefined;
  if (store !== undefined) members["store"] = store;
  const thinkingBudget = endpoint.thinkingBudget ? createThinkingBudget() : undefined;
  if (thinkingBudget !== undefined) members["thinking"] = thinkingBudget.slot;
  const streamOptions = endpoint.streamOptions && needs.streamOptions ? createStreamOptions(maxDuplicates) : undefined;
  if (streamOptions !== undefined) {
    repeated.push(streamOptions.all, streamOptions.includeUsage);
    members["timings_per_token"] = streamOptions.timings;
    members["n"] = streamOptions.n;
  }
  const givenOptions = endpoint.streamOptions ? (streamOptions?.all.slot ?? createSlot()) : undefined;
  if (givenOptions !== undefined) members["stream_options"] = givenOptions;
  const reasoning =
    endpoint.templateKwargs && needs.reasoning
      ? { templateKwargs: createTemplateKwargs(), outputConfig: createOutputConfig() }
      : undefined;
  if (reasoning !== undefined) {
    members["chat_template_kwargs"] = reasoning.templateKwargs.slot;
    members["output_config"] = reasoning.outputConfig.slot;
  }
  const mayNeedPrefix = endpoint.system !== undefined && (reasoning !== undefined || needs.hanGuard);
  const opening = needs.opening && endpoint.takesJson ? createOpeningSlots() : undefined;
  if (opening !== undefined) Object.assign(members, opening.members);
  const conversation = mayNeedPrefix ? createConversationSlots(opening?.onMessage) : undefined;
  if (conversation !== undefined) {
    members["messages"] = conversation.messages;
    members["system"] = conversation.system;
  }
  const onFound: OnFound = (name, place) => void (body.notAllowed = addFound(body.notAllowed, name, place));
  const otherMembersIn =
    (place: string): NonNullable<SlotOptions["onOtherMember"]> =>
    (bytes, start, end) => {
      if (!needs.keyRules && !limitLetters.has(bytes[start] ?? 0)) return undefined;
      const name = findMemberName(bytes, start, end);
      if (name === undefined) return undefined;
      if (needs.keyRules) onFound(name, place);
      return isLimitName(name) ? maxTokensInOtherCase.slot : undefined;
    };
  const texts = needs.keyRules ? watchTexts(endpoint, members, watch, onFound) : undefined;
  // LiteLLM sends its members in place of the others; other backends do not read it.
  const inExtra = Object.fromEntries([...(engineMembers ?? [])].map(([name, [, { slot }]]) => [name, slot]));
  members["extra_body"] = createSlot({ members: inExtra, onOtherMember: otherMembersIn("extra_body.") });
  const onStart = (): void => {
    body.notAllowed = noneFound;
    if (texts !== undefined) [texts.prompts, texts.ofRequests] = [0, undefined];
    for (const { clear } of repeated) clear();
    conversation?.clear();
    opening?.clear();
  };
  const body = {
    root: createSlot({ members, onOtherMember: otherMembersIn(""), onStart }),
    /** The same for bodies whose watched members are the same. */
    shape: JSON.stringify([endpoint, needs]),
    model,
    /** What goes round a rule of its key; nothing for a key without such rules. To be completed by `findNotAllowed`. */
    notAllowed: noneFound,
    /** Whether a response is stored; undefined for bodies of other paths. */
    store,
    /** All that would be edited as often as it comes. */
    repeated,
    /** The same limit under its names of different years and endpoints. */
    maxTokens,
    /** The same in names such as `Max_Tokens`, which backends in Go read, in llama.cpp's own, and in `extra_body`: capped too. */
    maxTokensInOtherCase,
    texts,
    thinkingBudget,
    stream,
    serviceTier,
    engineMembers,
    streamOptions,
    /** The client's, whether they are edited or not; undefined on endpoints that have none. */
    givenOptions,
    reasoning,
    conversation,
    opening,
  };
  return body;
}

/** In the order of `maxTokens`. */
export const maxTokensNames = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;

/** llama.cpp has one of its own. */
const isLimitName = (name: string): boolean => name === "n_predict" || maxTokensNames.some((one) => one === name);

/** An escape may be one too; most other names need not be decoded. */
const limitLetters = new Set(Buffer.from("mMn\\"));

type OnFound = (name: MemberName, place?: string) => void;

function watchTexts(
  { batched }: Endpoint,
  members: Record<string, JsonSlot>,
  watch: (name: string) => RepeatedSlot,
  onFound: OnFound,
) {
  const texts = {
    n: watch("n"),
    bestOf: watch("best_of"),
    /** How many prompts legacy completions have, or conversations a batch; 0 for a single one. */
    prompts: 0,
    /** The output limits of the requests of a batch together; undefined for any other body. */
    ofRequests: undefined as number | undefined,
  };
  // A list of numbers is one prompt: its tokens.
  const prompt = createSlot({
    onValue() {
      if (prompt.kind !== "number") texts.prompts += 1;
    },
  });
  members["prompt"] = createSlot({ element: prompt });
  // vLLM adds them to the others.
  members["prompt_embeds"] = members["prompt"];
  const background = createSlot({
    onValue(bytes) {
      if (isLenientBoolean(bytes, background, true)) onFound("background");
    },
  });
  members["background"] = background;
  if (batched === "messages") members["messages"] = members["prompt"];
  if (batched === "requests") members["requests"] = createSlot({ element: createRequestSlot(texts, onFound) });
  return texts;
}

/** A request of a batch. */
function createRequestSlot(texts: RequestedTexts, onFound: OnFound): JsonSlot {
  const place = "requests.params.";
  const maxTokens = createRepeatedSlot(1);
  const params = createSlot({
    members: { max_tokens: maxTokens.slot },
    onOtherMember(bytes, start, end) {
      const name = findMemberName(bytes, start, end);
      if (name !== undefined && memberRows[name].rule === "tokens") onFound(name, place);
      return undefined;
    },
  });
  return createSlot({
    members: { params },
    onStart: maxTokens.clear,
    onValue(bytes) {
      const [value] = maxTokens.values;
      if (maxTokens.isOverflowing || !isOneNumber(bytes, maxTokens.values)) onFound("max_tokens", place);
      texts.ofRequests =
        (texts.ofRequests ?? 0) + ((value && findPositiveInteger(bytes, value)) ?? defaultOutputTokens);
    },
  });
}

/** What of a body that was read goes round a rule of its key. */
export function findNotAllowed(bytes: Uint8Array, { batched }: Endpoint, body: RequestBody): FoundMembers {
  const { model, maxTokens, texts } = body;
  let found = body.notAllowed;
  if (texts === undefined) return found;
  for (const [index, name] of maxTokensNames.entries())
    if (!isOneNumber(bytes, maxTokens[index]?.values)) found = addFound(found, name);
  if (!isOneNumber(bytes, texts.n.values)) found = addFound(found, "n");
  if (!isOneNumber(bytes, texts.bestOf.values)) found = addFound(found, "best_of");
  if (model.values.length > 1) found = addFound(found, "model");
  return batched === "requests" ? addFound(found, "requests") : found;
}

/** `thinking` of the Messages API. */
function createThinkingBudget() {
  const type = createSlot();
  const budgetTokens = createSlot();
  return { slot: createSlot({ members: { type, budget_tokens: budgetTokens } }), type, budgetTokens };
}
