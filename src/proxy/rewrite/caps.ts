import { isAscii, partOf, isString, findPositiveInteger } from "../json/bytes.ts";
import type { JsonEditor } from "../json/edit.ts";
import type { Steps } from "../json/read.ts";
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
  {
    maxTokens,
    maxTokensInOtherCase,
    thinkingBudget,
  }: Pick<RequestBody, "maxTokens" | "maxTokensInOtherCase" | "thinkingBudget">,
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
