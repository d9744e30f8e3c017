import { cacheWriteName, findCount, isObject, tokenCountNames } from "../usage/event-usage.ts";
import { RepeatedEvent, type OutputLength } from "./repeated-event.ts";
import type { ResponseListener } from "./usage.ts";

/** What a stream showed of its output, as limits of tokens are charged for it. */
export interface SeenOutput {
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

export const nothingSeen: SeenOutput = {
  estimatedTokens: 0,
  reportedTokens: 0,
  choicesInputTokens: 0,
  isOpening: false,
  hasUnreportedChoice: false,
  cacheWriteTokens: 0,
};

/** Sees each document of a response in its order, and skims what is like one before. */
export interface OutputObserver {
  onDocument: NonNullable<ResponseListener["onDocument"]>;
  skim: NonNullable<ResponseListener["skim"]>;
  seen(): SeenOutput;
}

const charactersPerToken = 4;

/**
 * Follows the output for keys with limits of tokens.
 * @param isKnown the stream is of a dialect that we know; else its output is looked for, and may not be long events
 */
export function createOutputObserver(isKnown = true): OutputObserver {
  const choices = createChoices();
  const repeated = new RepeatedEvent();
  let [events, characters] = [0, 0];
  let [isOpening, cacheWriteTokens] = [false, 0];
  let hasDeltas = false;
  /** The output of the document that is being seen. */
  let texts: string[] = [];

  function addOutput(length: OutputLength): void {
    events += length.events;
    characters += length.characters;
  }

  function addTexts(of: Record<string, unknown>, members: readonly string[]): boolean {
    const added = textsOf(of, members);
    const length = added.reduce((sum, text) => sum + text.length, 0);
    addOutput({ events: length === 0 ? 0 : 1, characters: length });
    texts.push(...added);
    return length > 0;
  }

  function seeCacheWrite(usage: Record<string, unknown>): void {
    cacheWriteTokens = findCount(usage, [cacheWriteName]) ?? cacheWriteTokens;
  }

  function seeUsage({ message, usage }: Record<string, unknown>): void {
    if (isObject(message) && isObject(message["usage"])) {
      isOpening = true;
      seeCacheWrite(message["usage"]);
    }
    if (isObject(usage)) {
      if (typeof usage["output_tokens"] === "number") isOpening = false;
      seeCacheWrite(usage);
    }
  }

  /** @returns whether a choice has ended */
  function seeOutput(document: Record<string, unknown>): boolean {
    const { choices: list, usage } = document;
    if (Array.isArray(list)) return choices.see(list, usage, (choice) => addTexts(choice, choiceMembers));
    // The end of a part repeats it.
    if (isKnown) addTexts(document, eventMembers);
    else findOutput(document);
    return false;
  }

  /** In its first two levels. Where there are deltas, what else there is of a text repeats them. */
  function findOutput(document: Record<string, unknown>): void {
    const levels = [document, ...Object.values(document).filter(isObject)];
    if (levels.some((level) => addTexts(level, ["delta"]))) hasDeltas = true;
    else if (!hasDeltas) levels.some((level) => addTexts(level, foundMembers));
  }

  return {
    onDocument(document, unreadBytes, json) {
      if (!isObject(document)) return;
      seeUsage(document);
      if (unreadBytes > 0) return isKnown ? addOutput({ events: 1, characters: unreadBytes }) : undefined;
      const hasEnded = seeOutput(document);
      const [text, ...others] = texts;
      texts = [];
      const isOnlyText = text !== undefined && others.length === 0 && !hasEnded;
      const { message, usage } = document;
      if (isOnlyText && json !== undefined && !isObject(message) && !isObject(usage)) repeated.learn(json, text);
    },
    skim(whole) {
      const length = repeated.lengthOf(whole);
      if (length !== undefined) addOutput(length);
      return length !== undefined;
    },
    seen: () => ({
      ...choices.seen(),
      estimatedTokens: Math.max(events, Math.ceil(characters / charactersPerToken)),
      isOpening,
      cacheWriteTokens,
    }),
  };
}

interface ReportedChoice {
  input: number;
  output: number;
}

/** Bounds the memory of a stream whose choices have ever new numbers. */
const maxChoices = 4096;

/**
 * What choices report. vLLM and SGLang report one total after the last choice, and, if they are asked to, its own count
 * beside each choice; llama.cpp reports each choice by itself, in a chat by a frame of only usage after its end. So usage
 * beside a choice is that choice's, and a frame of only usage belongs to the choice that ended before it, unless that one
 * has usage already.
 */
function createChoices() {
  /** Undefined: the choice has begun, and has no usage. */
  const choices = new Map<number, ReportedChoice | undefined>();
  let lastEnded: number | undefined;

  /** @param beside the choice in the same frame, undefined if there is none, or several */
  function seeUsage(usage: Record<string, unknown>, beside: number | undefined): void {
    const output = findCount(usage, tokenCountNames.outputTokens);
    if (output === undefined) return;
    const input = findCount(usage, tokenCountNames.inputTokens) ?? 0;
    if (beside !== undefined) choices.set(beside, { input, output });
    else if (lastEnded !== undefined && choices.get(lastEnded) === undefined) choices.set(lastEnded, { input, output });
  }

  return {
    /** @param addOutput of a choice; returns whether it has any. @returns whether one of them has ended */
    see(list: readonly unknown[], usage: unknown, addOutput: (choice: Record<string, unknown>) => boolean): boolean {
      const endedBefore = lastEnded;
      let [hasEnded, hasOutput] = [false, false];
      const indexes = list.filter(isObject).map((choice) => {
        const index = typeof choice["index"] === "number" ? choice["index"] : 0;
        if (!choices.has(index) && choices.size < maxChoices) choices.set(index, undefined);
        if (addOutput(choice)) hasOutput = true;
        if (typeof choice["finish_reason"] === "string") [hasEnded, lastEnded] = [true, index];
        return index;
      });
      if (!isObject(usage)) return hasEnded;
      // LiteLLM and OpenRouter send a frame of usage alone with an empty choice.
      const isAfterEnd = endedBefore !== undefined && endedBefore === lastEnded && !hasOutput;
      const isAlone = indexes.length === 0 || isAfterEnd;
      if (isAlone || indexes.length === 1) seeUsage(usage, isAlone ? undefined : indexes[0]);
      return hasEnded;
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
        reportedTokens: output,
        choicesInputTokens: reported < 2 ? 0 : input / reported,
        hasUnreportedChoice: reported < choices.size,
      };
    },
  };
}

/** Members of an event, or of a choice, that hold what is new of the output. Others repeat what was sent. */
const choiceMembers = ["delta", "text"] as const;
const eventMembers = ["delta", "content_block"] as const;
/** The same in a dialect that we do not know. */
const foundMembers = ["text", "content", "token"] as const;

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
  // Of the text of a thread's message.
  "value",
] as const;

/** Deeper than any dialect goes. */
const maxDepth = 6;

/** Text, reasoning, tool calls and refusals in an event or a choice; none is empty. */
function textsOf(of: Record<string, unknown>, members: readonly string[]): string[] {
  const texts: string[] = [];
  for (const name of members) addTextsOf(of[name], texts, 1);
  return texts;
}

function addTextsOf(value: unknown, texts: string[], depth: number): void {
  if (typeof value === "string" && value !== "") texts.push(value);
  if (depth > maxDepth || !isObject(value)) return;
  if (Array.isArray(value)) {
    for (const element of value) addTextsOf(element, texts, depth + 1);
    return;
  }
  for (const name of outputMembers) if (value[name] !== undefined) addTextsOf(value[name], texts, depth + 1);
  // Some servers send the same text under both names.
  const { reasoning = value["reasoning_content"] } = value;
  if (typeof reasoning === "string" && reasoning !== "") texts.push(reasoning);
}
