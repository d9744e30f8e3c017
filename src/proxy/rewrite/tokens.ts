// The tokens of a body, by its characters: the caps of its output, which the context has to leave room for, and for limits an
// estimate of its input.

import { contentOf, findPositiveInteger, indexOfBytes, isAscii, isString, latin1, partOf } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import { maxBytesAtOnce, type Party, readJsonInSteps, runByLength, type Steps } from "../json/read.ts";
import { createSlot, type JsonSlot, type Span } from "../json/slots.ts";
import { maxTokensNames, type RequestBody, type ThinkingBudget } from "./watched-members.ts";
import type { ModelRules } from "../../domain/models.ts";

type CapRules = Pick<ModelRules, "contextTokens" | "maxOutputTokens">;

/** Reserved for what the chat template adds to the conversation. */
const reservedTokens = 512;
const charactersPerToken = 3;

/** The token limits of a body. */
interface CappedTokens {
  /**
   * The largest that is sent, as far as the context could ever leave room for it, of those that a key with limits of tokens
   * may send; undefined if there is none.
   */
  largest: number | undefined;
  /** The member that has it, if that is not `max_tokens`. */
  largestName?: string | undefined;
  /** The first that was lowered; undefined if none was. */
  lowered: { from: number; to: number } | undefined;
  /** Undefined if the usual cap applies. */
  exemption: CapExemption | undefined;
}

/**
 * Backends refuse a limit that is not above the thinking budget. Where the usual cap is not, `MAX_OUTPUT_TOKENS` yields, and
 * if the context does not leave more than the budget either, nothing is capped.
 */
export interface CapExemption {
  /** In tokens. */
  budget: number;
  /** The context has room for what the client asks for. */
  fitsContext: boolean;
}

const noLimits: CappedTokens = {
  largest: undefined,
  lowered: undefined,
  exemption: undefined,
};

/** Caps every occurrence, so that the backend reads a capped one whichever it uses. */
export function* capTokensInSteps(
  editor: JsonEditor,
  bytes: Uint8Array,
  { maxTokens, maxTokensInOtherCase, thinkingBudget }: RequestBody,
  rules: CapRules,
): Steps<CappedTokens> {
  let count = maxTokensInOtherCase.values.length;
  for (const { values } of maxTokens) count += values.length;
  if (count === 0) return noLimits;
  const all = [...maxTokens, maxTokensInOtherCase];
  let largest: number | undefined;
  let largestName: string | undefined;
  let lowered: CappedTokens["lowered"];
  const usual = yield* outputLimitInSteps(bytes, rules);
  const budget = thinkingBudget === undefined ? 0 : (findBudget(bytes, thinkingBudget) ?? 0);
  const { limit, exemption } =
    usual > budget
      ? { limit: usual }
      : yield* limitBesideBudgetInSteps(bytes, usual, { maxTokens: all, budget }, rules);
  const leftByEmptyConversation = Math.max(1, rules.contextTokens - reservedTokens);
  for (const repeated of all) {
    for (const value of repeated.values) {
      if (value.end - value.start > maxShortBytes) yield;
      const tokens = findPositiveInteger(bytes, value);
      if (tokens === undefined) continue;
      const sent = Math.min(tokens, limit, leftByEmptyConversation);
      if (repeated !== maxTokensInOtherCase && (largest === undefined || sent > largest)) {
        largest = sent;
        largestName = repeated === maxTokens[0] ? undefined : maxTokensNames[all.indexOf(repeated)];
      }
      if (tokens <= limit) continue;
      lowered ??= { from: Math.min(tokens, Number.MAX_SAFE_INTEGER), to: limit };
      editor.replace(value, value.kind === "string" ? `"${limit}"` : String(limit));
    }
  }
  return { largest, largestName, lowered, exemption };
}

/** @param usual the cap that is not above the budget */
function* limitBesideBudgetInSteps(
  bytes: Uint8Array,
  usual: number,
  { maxTokens, budget }: { maxTokens: RequestBody["maxTokens"]; budget: number },
  rules: CapRules,
): Steps<{
  limit: number;
  exemption?: CapExemption | undefined;
}> {
  let most = 0;
  for (const value of maxTokens.flatMap(({ values }) => values)) {
    if (value.end - value.start > maxShortBytes) yield;
    most = Math.max(most, findPositiveInteger(bytes, value) ?? 0);
  }
  if (most <= usual) return { limit: usual };
  const contextRules = { ...rules, maxOutputTokens: Infinity };
  // A body that is far from filling the context: its characters need not be counted.
  const fitsAnyway = most <= outputLimit(bytes.length, contextRules);
  const contextLimit = fitsAnyway ? most : yield* outputLimitInSteps(bytes, contextRules);
  const exemption = { budget, fitsContext: most <= contextLimit };
  return { limit: contextLimit > budget ? contextLimit : Infinity, exemption };
}

/** Undefined if there is none, or thinking is turned off. */
function findBudget(bytes: Uint8Array, thinking: ThinkingBudget): number | undefined {
  if (thinking.slot.kind !== "object") return undefined;
  return isString(bytes, thinking.type, "disabled") ? undefined : findPositiveInteger(bytes, thinking.budgetTokens);
}

/** A hostile body has hundreds of longer ones, each of which takes up to two milliseconds: others have their turns between. */
const maxShortBytes = 1024;

/** What the context leaves beside the estimated input, at most the operator's limit, at least 1. */
export function* outputLimitInSteps(bytes: Uint8Array, rules: CapRules): Steps<number> {
  // Each character has one to four bytes in UTF-8: mostly it does not matter how many there are.
  const least = outputLimit(bytes.length, rules);
  return least === outputLimit(bytes.length / 4, rules)
    ? least
    : outputLimit(yield* countCharactersInSteps(bytes), rules);
}

function outputLimit(characters: number, { contextTokens, maxOutputTokens }: CapRules): number {
  const available = contextTokens - estimatedTokens(characters) - reservedTokens;
  return Math.max(1, Math.min(available, maxOutputTokens));
}

/** The estimated input of a body of so many characters, as the cap uses it. */
export const estimatedTokens = (characters: number): number => Math.floor(characters / charactersPerToken);

/** Takes at most 0.05 ms. */
export const stepBytes = 64 * 1024;

/** @param bytes valid UTF-8 */
export function* countCharactersInSteps(bytes: Uint8Array): Steps<number> {
  let count = 0;
  for (let from = 0; from < bytes.length; from += stepBytes) {
    count += countCharacters(partOf(bytes, from, Math.min(from + stepBytes, bytes.length)));
    yield;
  }
  return count;
}

/** @param bytes valid UTF-8, in which every byte but a continuation byte starts a character */
export function countCharacters(bytes: Uint8Array): number {
  if (isAscii(bytes)) return bytes.length;
  let count = 0;
  for (let at = 0; at < bytes.length; at++) if (((bytes[at] ?? 0) & 0xc0) !== 0x80) count++;
  return count;
}

/**
 * The estimated input tokens of a body, for limits: its characters as the cap counts them, but images, audio and files by
 * their kind. A megabyte of base64 is one image, and not 350,000 tokens.
 * @returns a promise for a long body
 */
export function estimateInput(bytes: Uint8Array, party?: Party): number | Promise<number> {
  let mayHoldMedia = false;
  for (const marker of markers) mayHoldMedia ||= indexOfBytes(bytes, marker, 0) >= 0;
  // Most bodies are short text, and steps cost more than their characters.
  if (!mayHoldMedia && bytes.length <= maxBytesAtOnce) return estimatedTokens(countCharacters(bytes));
  return runByLength(estimateInSteps(bytes, mayHoldMedia), bytes.length, party);
}

function* estimateInSteps(bytes: Uint8Array, mayHoldMedia: boolean): Steps<number> {
  const characters = yield* countCharactersInSteps(bytes);
  const media = mayHoldMedia ? yield* readMediaInSteps(bytes) : noMedia;
  return estimatedTokens(characters - media.characters) + media.tokens;
}

/** One of these stands in every body that holds media. */
const markers = [";base64,", "input_audio", "media_type", "file_data", "image_generation_call"].map((text) =>
  Buffer.from(text),
);

interface Media {
  tokens: number;
  /** How long its base64 is. */
  characters: number;
}

const noMedia: Media = { tokens: 0, characters: 0 };

const imageTokens = 1500;
const audioTokens = 3000;

function tokensOf(mediaType: string, base64Length: number): number {
  if (mediaType.startsWith("image/")) return imageTokens;
  if (mediaType.startsWith("audio/")) return audioTokens;
  // A quarter of a file is text.
  const decodedBytes = Math.floor((base64Length * 3) / 4);
  return estimatedTokens(Math.floor(decodedBytes / 4));
}

/** Only what stands where the dialects put media counts by its kind: text that looks like it is text to a model. */
function* readMediaInSteps(bytes: Uint8Array): Steps<Media> {
  const media: Media = { ...noMedia };
  const root = createMediaSlots((mediaType, { start, end }) => {
    // Anything else is no base64, and has fewer characters than bytes.
    if (!isAscii(partOf(bytes, start, end))) return;
    const length = end - start;
    media.tokens += tokensOf(mediaType, length);
    media.characters += length;
  });
  const isJson = yield* readJsonInSteps(bytes, root);
  return isJson ? media : noMedia;
}

type Found = (mediaType: string, base64: Span) => void;

/**
 * `image_url`, `input_audio` and `file` of chat, there `audio_url` and `video_url` of vLLM; `image_url` and `file_data` of
 * responses, there the image that a call made or a screenshot shows; `source` of messages, which a batch has in the `params`
 * of its requests.
 */
function createMediaSlots(found: Found): JsonSlot {
  const block = createBlockSlot(found, createSlot({ element: createBlockSlot(found) }));
  const blocks = createSlot({ element: block });
  const output = createSlot({ element: block, members: { image_url: createUrlSlot(found) } });
  const createItem = (element?: JsonSlot): JsonSlot => {
    const [type, result] = [createSlot(), createSlot()];
    const item = createSlot({
      members: { content: blocks, output, type, result },
      ...(element && { element }),
      onValue(bytes) {
        const isImage = item.kind === "object" && isString(bytes, type, "image_generation_call");
        if (isImage && result.kind === "string") found("image/", contentOf(result));
      },
    });
    return item;
  };
  // An element may be a conversation, whose elements are messages.
  const list = createSlot({ element: createItem(createItem()) });
  const params = createSlot({ members: { messages: list, system: blocks } });
  const requests = createSlot({ element: createSlot({ members: { params } }) });
  return createSlot({ members: { messages: list, input: list, system: blocks, requests } });
}

/** @param content of a block that holds others, such as the result of a tool */
function createBlockSlot(found: Found, content: JsonSlot = createSlot()): JsonSlot {
  const audio = createSlot();
  const inputAudio = createSlot({ members: { data: audio } });
  const [type, mediaType, data] = [createSlot(), createSlot(), createSlot()];
  const source = createSlot({ members: { type, media_type: mediaType, data } });
  return createSlot({
    members: {
      image_url: createUrlSlot(found),
      audio_url: createUrlSlot(found),
      video_url: createUrlSlot(found),
      input_audio: inputAudio,
      file: createSlot({ members: { file_data: createDataSlot(found, true) } }),
      file_data: createDataSlot(found, true),
      source,
      content,
    },
    onValue(bytes) {
      // Its members are those of an earlier block if this one has none.
      if (inputAudio.kind === "object" && audio.kind === "string") found("audio/", contentOf(audio));
      // A document may be plain text.
      const isBase64 = source.kind === "object" && isString(bytes, type, "base64");
      if (isBase64 && mediaType.kind === "string" && data.kind === "string") {
        found(latin1(bytes, mediaType.start + 1, mediaType.start + 1 + maxTypeLength), contentOf(data));
      }
    },
  });
}

/** @param mayBeRaw base64 may stand there without `data:` too */
function createDataSlot(found: Found, mayBeRaw = false, members: Readonly<Record<string, JsonSlot>> = {}): JsonSlot {
  const slot = createSlot({ members, onValue: (bytes) => readDataUrl(bytes, slot, found, mayBeRaw) });
  return slot;
}

const createUrlSlot = (found: Found): JsonSlot => createDataSlot(found, false, { url: createDataSlot(found) });

const maxTypeLength = 64;
const blank = Buffer.from(" ");
const base64Mark = ";base64,";

function readDataUrl(bytes: Uint8Array, value: JsonSlot, found: Found, mayBeRaw: boolean): void {
  if (value.kind !== "string") return;
  const { start, end } = contentOf(value);
  const head = latin1(bytes, start, Math.min(end, start + "data:".length + maxTypeLength + base64Mark.length));
  const mark = head.indexOf(base64Mark);
  if (!head.startsWith("data:")) {
    if (mayBeRaw && indexOfBytes(partOf(bytes, start, end), blank, 0) < 0) found("", { start, end });
    return;
  }
  if (mark < 0) return;
  found(head.slice("data:".length, mark), { start: start + mark + base64Mark.length, end });
}
