import type { Admission, Reservation } from "../../domain/admissions.ts";
import { cachedTokensOf, type Charge, chargedTokens, noUsage, type Usage } from "../../domain/usage.ts";
import type { UsageEvent } from "../../domain/usage-event.ts";
import { getEndpoint } from "../rewrite/endpoint.ts";
import { isEventStream } from "../usage/response-usage.ts";
import { cacheWriteName, findCount, isObject, tokenCountNames, type UsageShape } from "../usage/event-usage.ts";

/**
 * What the limits of tokens of a key are charged for one response, beside its counts: what the backend reported, else an
 * estimate by how the response ended.
 */
export interface ResponseCharge {
  /** Sees each document of the response. */
  see: OutputObserver["see"];
  /** @param isWhole the response has come to its end. @returns what is owed since the last call */
  owed(usage: Usage, isWhole: boolean): Charge;
  /** What is owed for a response that does not count, all of which is then an estimate. */
  owedUncounted(usage: Usage): number;
  /** The part of what was owed that is estimated. */
  estimatedTokens(): number;
}

interface ChargedResponse {
  /** Undefined for a key without limits of tokens. */
  reservation: Reservation;
  method: string;
  path: string;
  response: Response;
}

/** @returns undefined if nothing is owed beside the counts */
export function createResponseCharge(charged: ChargedResponse): ResponseCharge | undefined {
  const { reservation, method, path } = charged;
  if (!mayGenerate(method, path)) return undefined;
  const { inputTokens: estimatedInput, tokens, prompts } = reservation;
  const observer = createOutputObserver();
  const isStream = isEventStream({ contentType: charged.response.headers.get("content-type") });
  const isCacheApart = getEndpoint(path).folder === "messages";
  let total: Charge = { besideTokens: 0, estimatedTokens: 0 };

  function owe(usage: Usage, isWhole: boolean): Charge {
    const { inputTokens, outputTokens } = usage;
    const seen = observer.seen();
    const cache = isCacheApart ? cachedTokensOf(usage) + seen.cacheWriteTokens : 0;
    const input = Math.max(inputTokens, Math.round(seen.choicesInputTokens * prompts)) + cache;
    const output = Math.max(outputTokens, seen.reportedTokens);
    const whole = input + output > 0 ? 0 : tokens;
    const estimatedTokens = isStream ? estimateStream({ input, output, isWhole }, seen, estimatedInput) : whole;
    return { besideTokens: input + output - inputTokens - outputTokens + estimatedTokens, estimatedTokens };
  }

  return {
    see: observer.see,
    owed(usage, isWhole) {
      const before = total;
      total = owe(usage, isWhole);
      return {
        besideTokens: total.besideTokens - before.besideTokens,
        estimatedTokens: total.estimatedTokens - before.estimatedTokens,
      };
    },
    owedUncounted(usage) {
      const all = chargedTokens({ ...usage, ...owe(usage, false) });
      total = { besideTokens: all, estimatedTokens: all };
      return all;
    },
    estimatedTokens: () => total.estimatedTokens,
  };
}

/** Whether a request generates tokens at a path whose responses report them. */
export const mayGenerate = (method: string, path: string): boolean => method === "POST" && getEndpoint(path).takesJson;

/** Whether the output of a stream that was cut stands in its counts. */
export const isOutputReported = ({ outputTokens }: Usage, shape: UsageShape | undefined): boolean =>
  outputTokens > 0 && shape?.outputIsOpening !== true;

/** What the backend reported. */
interface Reported {
  input: number;
  output: number;
  isWhole: boolean;
}

/** What it did not report of a stream. */
function estimateStream(
  { input, output, isWhole }: Reported,
  { estimatedTokens, isOpening, hasUnreportedChoice }: SeenOutput,
  estimatedInput: number,
): number {
  const isReported = output > 0 && !isOpening && (isWhole || !hasUnreportedChoice);
  return (input > 0 ? 0 : estimatedInput) + (isReported ? 0 : Math.max(0, estimatedTokens - output));
}

interface Estimate {
  estimatedTokens: number;
  admission: Admission | undefined;
}

/** Charges an estimate and counts nothing. */
export const chargeEvent = (
  { keyId, closedAt }: Pick<UsageEvent, "keyId" | "closedAt">,
  { estimatedTokens, admission }: Estimate,
): UsageEvent => ({
  ...noUsage,
  keyId,
  closedAt,
  requestCount: 0,
  besideTokens: estimatedTokens,
  estimatedTokens,
  admission: admission?.handOver(),
});

/** What a stream showed of its output, as limits of tokens are charged for it. */
interface SeenOutput {
  /** The larger of the events with output and a quarter of their characters. */
  estimatedTokens: number;
  /** The sum over the choices that have usage of their own; 0 if none has. */
  reportedTokens: number;
  /** The input of these choices, each of which reports that of its own prompt; 0 if fewer than two have any. */
  choicesInputTokens: number;
  /** The output that is reported is the placeholder that a Messages stream opens with. */
  isOpening: boolean;
  /** A choice has begun that has no usage of its own. */
  hasUnreportedChoice: boolean;
  /** Input that a cache was given, beside the input of the Messages API. */
  cacheWriteTokens: number;
}

/** Sees each document of a response in its order. */
interface OutputObserver {
  /** @param unreadBytes of a document that is too long to be parsed, of which only the usage is known; else 0 */
  see(document: unknown, unreadBytes: number): void;
  seen(): SeenOutput;
}

interface ReportedChoice {
  input: number;
  output: number;
}

/** Bounds the memory of a stream whose choices have ever new numbers. */
const maxChoices = 4096;
const charactersPerToken = 4;

/**
 * Follows the output for keys with limits of tokens. vLLM and SGLang report one total after the last choice, and, if they
 * are asked to, its own count beside each choice; llama.cpp reports each choice by itself, in a chat by a frame of only usage
 * after its end. So usage beside a choice is that choice's, and a frame of only usage belongs to the choice that ended before
 * it, unless that one has usage already.
 */
function createOutputObserver(): OutputObserver {
  let events = 0;
  let characters = 0;
  /** Undefined: the choice has begun, and has no usage. */
  const choices = new Map<number, ReportedChoice | undefined>();
  let lastEnded: number | undefined;
  let [isOpening, cacheWriteTokens] = [false, 0];

  function addOutput(text: number): void {
    events += text === 0 ? 0 : 1;
    characters += text;
  }

  function seeChoice(choice: Record<string, unknown>): number {
    const index = typeof choice["index"] === "number" ? choice["index"] : 0;
    if (!choices.has(index) && choices.size < maxChoices) choices.set(index, undefined);
    addOutput(lengthOfOutput(choice, choiceMembers));
    if (typeof choice["finish_reason"] === "string") lastEnded = index;
    return index;
  }

  /** @param beside the choice in the same frame, undefined if there is none, or several */
  function seeChoiceUsage(usage: Record<string, unknown>, beside: number | undefined): void {
    const output = findCount(usage, tokenCountNames.outputTokens);
    if (output === undefined) return;
    const input = findCount(usage, tokenCountNames.inputTokens) ?? 0;
    if (beside !== undefined) choices.set(beside, { input, output });
    else if (lastEnded !== undefined && choices.get(lastEnded) === undefined) choices.set(lastEnded, { input, output });
  }

  function seeChoices(list: readonly unknown[], usage: unknown): void {
    const had = events;
    const ended = lastEnded;
    const indexes = list.filter(isObject).map(seeChoice);
    if (!isObject(usage)) return;
    // LiteLLM and OpenRouter send a frame of usage alone with an empty choice.
    const isAlone = indexes.length === 0 || (ended !== undefined && ended === lastEnded && events === had);
    if (isAlone || indexes.length === 1) seeChoiceUsage(usage, isAlone ? undefined : indexes[0]);
  }

  function seeCacheWrite(usage: Record<string, unknown>): void {
    cacheWriteTokens = findCount(usage, [cacheWriteName]) ?? cacheWriteTokens;
  }

  return {
    see(document, unreadBytes) {
      if (!isObject(document)) return;
      const { message, usage } = document;
      if (isObject(message) && isObject(message["usage"])) {
        isOpening = true;
        seeCacheWrite(message["usage"]);
      }
      if (isObject(usage)) {
        if (typeof usage["output_tokens"] === "number") isOpening = false;
        seeCacheWrite(usage);
      }
      if (unreadBytes > 0) addOutput(unreadBytes);
      else if (Array.isArray(document["choices"])) seeChoices(document["choices"], usage);
      // The end of a part repeats it.
      else addOutput(lengthOfOutput(document, eventMembers));
    },
    seen() {
      let [reported, input, output] = [0, 0, 0];
      for (const choice of choices.values()) {
        if (choice === undefined) continue;
        reported += 1;
        input += choice.input;
        output += choice.output;
      }
      return {
        estimatedTokens: Math.max(events, Math.ceil(characters / charactersPerToken)),
        reportedTokens: output,
        choicesInputTokens: reported < 2 ? 0 : input / reported,
        isOpening,
        hasUnreportedChoice: reported < choices.size,
        cacheWriteTokens,
      };
    },
  };
}

/** Members of an event, or of a choice, that hold what is new of the output. Others repeat what was sent. */
const choiceMembers = ["delta", "text"] as const;
const eventMembers = ["delta", "content_block"] as const;

/** What holds output, or leads to it, in the events of every dialect. */
const outputMembers = [
  "text",
  "content",
  "refusal",
  "tool_calls",
  "function_call",
  "function",
  "name",
  "arguments",
  // These are of the Messages API.
  "thinking",
  "partial_json",
] as const;

/** Deeper than any dialect goes. */
const maxDepth = 6;

/** The characters of text, reasoning, tool calls and refusals in an event or a choice. */
function lengthOfOutput(of: Record<string, unknown>, members: readonly string[]): number {
  let length = 0;
  for (const name of members) length += lengthOf(of[name], 1);
  return length;
}

function lengthOf(value: unknown, depth: number): number {
  if (typeof value === "string") return value.length;
  if (depth > maxDepth || !isObject(value)) return 0;
  let length = 0;
  if (Array.isArray(value)) {
    for (const element of value) length += lengthOf(element, depth + 1);
    return length;
  }
  for (const name of outputMembers) if (value[name] !== undefined) length += lengthOf(value[name], depth + 1);
  // Some servers send the same text under both names.
  const { reasoning = value["reasoning_content"] } = value;
  return typeof reasoning === "string" ? length + reasoning.length : length;
}
