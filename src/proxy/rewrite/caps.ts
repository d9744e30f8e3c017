import { isAscii, partOf } from "../json/bytes.ts";
import { findNumber, findString } from "../json/decode.ts";
import type { JsonEditor } from "../json/edit.ts";
import type { JsonValue, RepeatedSlot } from "../json/slots.ts";
import type { Steps } from "../json/steps.ts";
import type { RewriteRules } from "./rules.ts";

export type CapRules = Pick<RewriteRules, "maxContextTokens" | "maxOutputTokens">;

/** Reserved for what the chat template adds to the conversation. */
const reservedTokens = 512;
const charactersPerToken = 3;

/** The token limits of a body. */
export interface CappedTokens {
  /** The largest that is sent; undefined if there is none. */
  largest: number | undefined;
  /** The first that was lowered; undefined if none was. */
  lowered: { from: number; to: number } | undefined;
}

const noLimits: CappedTokens = { largest: undefined, lowered: undefined };

/** Caps every occurrence, so that the backend reads a capped one whichever it uses. */
export function* capTokensInSteps(
  editor: JsonEditor,
  bytes: Uint8Array,
  maxTokens: readonly RepeatedSlot[],
  rules: CapRules,
): Steps<CappedTokens> {
  if (maxTokens.every(({ values }) => values.length === 0)) return noLimits;
  let largest: number | undefined;
  let lowered: CappedTokens["lowered"];
  const limit = yield* outputLimitInSteps(bytes, rules);
  for (const { values } of maxTokens) {
    for (const value of values) {
      const tokens = findPositiveInteger(bytes, value);
      if (tokens === undefined) continue;
      largest = Math.max(largest ?? 0, Math.min(tokens, limit));
      if (tokens <= limit) continue;
      lowered ??= { from: Math.min(tokens, Number.MAX_SAFE_INTEGER), to: limit };
      editor.replace(value, value.kind === "string" ? `"${limit}"` : String(limit));
    }
  }
  return { largest, lowered };
}

/**
 * The value as a double, as backends read it: `1e3` and `100.0` are integers, and so are a string of digits and a number
 * too large to have decimals or to be finite. Undefined for anything else, such as `NaN` and `Infinity`.
 */
function findPositiveInteger(bytes: Uint8Array, value: JsonValue): number | undefined {
  const digits = findString(bytes, value);
  const tokens = digits !== undefined && /^[0-9]+$/.test(digits) ? Number(digits) : findNumber(bytes, value);
  const isInteger = Number.isInteger(tokens) || tokens === Infinity;
  return tokens !== undefined && tokens > 0 && isInteger ? tokens : undefined;
}

/** What the context leaves beside the estimated input, at most the operator's limit, at least 1. */
export function* outputLimitInSteps(bytes: Uint8Array, rules: CapRules): Steps<number> {
  return findOutputLimit(bytes.length, rules) ?? outputLimit(yield* countCharactersInSteps(bytes), rules);
}

/** Undefined if it depends on the characters, of which each has one to four bytes in UTF-8. */
function findOutputLimit(byteCount: number, rules: CapRules): number | undefined {
  const least = outputLimit(byteCount, rules);
  return least === outputLimit(byteCount / 4, rules) ? least : undefined;
}

function outputLimit(characters: number, { maxContextTokens, maxOutputTokens }: CapRules): number {
  const available = maxContextTokens - estimatedTokens(characters) - reservedTokens;
  return Math.max(1, Math.min(available, maxOutputTokens));
}

/** The estimated input of a body of so many characters, as the cap uses it. */
export const estimatedTokens = (characters: number): number => Math.floor(characters / charactersPerToken);

/** Takes 0.03 ms. */
const stepBytes = 64 * 1024;

/** @param bytes valid UTF-8 */
export function* countCharactersInSteps(bytes: Uint8Array): Steps<number> {
  let count = 0;
  for (let from = 0; from < bytes.length; from += stepBytes) {
    count += countCharacters(partOf(bytes, from, Math.min(from + stepBytes, bytes.length)));
    yield;
  }
  return count;
}

/** @param bytes valid UTF-8 */
export const countCharacters = (bytes: Uint8Array): number =>
  isAscii(bytes) ? bytes.length : countNotContinued(bytes);

/** Every byte but a continuation byte starts a character. Four bytes at a time take half of the time. */
function countNotContinued(bytes: Uint8Array): number {
  const aligned = -bytes.byteOffset & 3;
  const wordCount = Math.max(0, bytes.length - aligned) >> 2;
  if (wordCount === 0) return countBytewise(bytes);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + aligned, wordCount);
  let continuations = 0;
  for (let index = 0; index < wordCount; index += 1) {
    const word = words[index] ?? 0;
    // In each byte the lowest bit, set if the two highest were 1 and 0.
    const marks = (word >>> 7) & ~(word >>> 6) & 0x01010101;
    continuations += Math.imul(marks, 0x01010101) >>> 24;
  }
  const edges = countBytewise(bytes.subarray(0, aligned)) + countBytewise(bytes.subarray(aligned + 4 * wordCount));
  return edges + 4 * wordCount - continuations;
}

function countBytewise(bytes: Uint8Array): number {
  return bytes.reduce((count, byte) => ((byte & 0xc0) === 0x80 ? count : count + 1), 0);
}
