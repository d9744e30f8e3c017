import { cacheWriteName, findCount, isObject, tokenCountNames } from "./event-usage.ts";
import { utf8 } from "../json/bytes.ts";

export type SeenOutput = typeof nothingSeen;

/** What a stream showed of its output, as limits of tokens are charged for it. */
export const nothingSeen = {
  /** The larger of the events with output and a quarter of their characters. */
  estimatedTokens: 0,
  /** The sum over the choices that have usage of their own; 0 if none has. */
  reportedTokens: 0,
  /** The input of these choices, each of which reports that of its own prompt; 0 if fewer than two have any. */
  choicesInputTokens: 0,
  /** The output that is reported is the placeholder that a Messages stream opens with. */
  isOpening: false,
  /** A choice has begun that has no usage of its own. */
  hasUnreportedChoice: false,
  /** Input that a cache was given, beside the input of the Messages API. */
  cacheWriteTokens: 0,
};

const charactersPerToken = 4;

/** Follows the output for keys with limits of tokens: sees each document in its order, and skims what is like one before. */
export class OutputObserver {
  readonly #choices = new Choices();
  readonly #repeated = new RepeatedEvent();
  #events = 0;
  #characters = 0;
  #isOpening = false;
  #cacheWriteTokens = 0;
  #hasDeltas = false;
  /** The output of the document that is being seen. */
  #texts: string[] = [];

  /** @param isKnown the stream is of a dialect that we know; else its output is looked for, and may not be long events */
  constructor(readonly isKnown = true) {}

  onDocument(document: unknown, unreadBytes: number, json?: Uint8Array): void {
    if (!isObject(document)) return;
    this.#seeUsage(document);
    if (unreadBytes > 0) return this.isKnown ? this.#add({ events: 1, characters: unreadBytes }) : undefined;
    const hasEnded = this.#seeOutput(document);
    const [text, ...others] = this.#texts;
    this.#texts = [];
    const isOnlyText = text !== undefined && others.length === 0 && !hasEnded;
    const { message, usage } = document;
    if (isOnlyText && json !== undefined && !isObject(message) && !isObject(usage)) this.#repeated.learn(json, text);
  }

  skim(whole: Uint8Array): boolean {
    const length = this.#repeated.lengthOf(whole);
    if (length !== undefined) this.#add(length);
    return length !== undefined;
  }

  seen(): SeenOutput {
    return {
      ...this.#choices.seen(),
      estimatedTokens: Math.max(this.#events, Math.ceil(this.#characters / charactersPerToken)),
      isOpening: this.#isOpening,
      cacheWriteTokens: this.#cacheWriteTokens,
    };
  }

  #add({ events, characters }: OutputLength): void {
    this.#events += events;
    this.#characters += characters;
  }

  #addTexts(of: Record<string, unknown>, members: readonly string[]): boolean {
    const added = textsOf(of, members);
    const length = added.reduce((sum, text) => sum + text.length, 0);
    this.#add({ events: length === 0 ? 0 : 1, characters: length });
    this.#texts.push(...added);
    return length > 0;
  }

  #seeUsage({ message, usage }: Record<string, unknown>): void {
    if (isObject(message) && isObject(message["usage"])) {
      this.#isOpening = true;
      this.#seeCacheWrite(message["usage"]);
    }
    if (isObject(usage)) {
      if (typeof usage["output_tokens"] === "number") this.#isOpening = false;
      this.#seeCacheWrite(usage);
    }
  }

  #seeCacheWrite(usage: Record<string, unknown>): void {
    this.#cacheWriteTokens = findCount(usage, [cacheWriteName]) ?? this.#cacheWriteTokens;
  }

  /** @returns whether a choice has ended */
  #seeOutput(document: Record<string, unknown>): boolean {
    const { choices, usage } = document;
    if (Array.isArray(choices)) {
      return this.#choices.see(choices, usage, (choice) => this.#addTexts(choice, choiceMembers));
    }
    // The end of a part repeats it.
    if (this.isKnown) this.#addTexts(document, eventMembers);
    else this.#findOutput(document);
    return false;
  }

  /** In its first two levels. Where there are deltas, what else there is of a text repeats them. */
  #findOutput(document: Record<string, unknown>): void {
    const levels = [document, ...Object.values(document).filter(isObject)];
    if (levels.some((level) => this.#addTexts(level, ["delta"]))) this.#hasDeltas = true;
    else if (!this.#hasDeltas) levels.some((level) => this.#addTexts(level, foundMembers));
  }
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
class Choices {
  /** Undefined: the choice has begun, and has no usage. */
  readonly #choices = new Map<number, ReportedChoice | undefined>();
  #lastEnded: number | undefined;

  /** @param addOutput of a choice; returns whether it has any. @returns whether one of them has ended */
  see(list: readonly unknown[], usage: unknown, addOutput: (choice: Record<string, unknown>) => boolean): boolean {
    const endedBefore = this.#lastEnded;
    let [hasEnded, hasOutput, count, last] = [false, false, 0, 0];
    for (const choice of list) {
      if (!isObject(choice)) continue;
      count += 1;
      last = typeof choice["index"] === "number" ? choice["index"] : 0;
      if (!this.#choices.has(last) && this.#choices.size < maxChoices) this.#choices.set(last, undefined);
      if (addOutput(choice)) hasOutput = true;
      if (typeof choice["finish_reason"] === "string") [hasEnded, this.#lastEnded] = [true, last];
    }
    if (!isObject(usage)) return hasEnded;
    // LiteLLM and OpenRouter send a frame of usage alone with an empty choice.
    const isAfterEnd = endedBefore !== undefined && endedBefore === this.#lastEnded && !hasOutput;
    const isAlone = count === 0 || isAfterEnd;
    if (isAlone || count === 1) this.#seeUsage(usage, isAlone ? undefined : last);
    return hasEnded;
  }

  /** @param beside the choice in the same frame, undefined if there is none, or several */
  #seeUsage(usage: Record<string, unknown>, beside: number | undefined): void {
    const output = findCount(usage, tokenCountNames.outputTokens);
    if (output === undefined) return;
    const input = findCount(usage, tokenCountNames.inputTokens) ?? 0;
    const [choices, ended] = [this.#choices, this.#lastEnded];
    if (beside !== undefined) choices.set(beside, { input, output });
    else if (ended !== undefined && choices.get(ended) === undefined) choices.set(ended, { input, output });
  }

  seen(): Pick<SeenOutput, "reportedTokens" | "choicesInputTokens" | "hasUnreportedChoice"> {
    let [reported, input, output] = [0, 0, 0];
    for (const choice of this.#choices.values()) {
      if (choice === undefined) continue;
      reported += 1;
      input += choice.input;
      output += choice.output;
    }
    return {
      reportedTokens: output,
      choicesInputTokens: reported < 2 ? 0 : input / reported,
      hasUnreportedChoice: reported < this.#choices.size,
    };
  }
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

/** How much output some events have. */
export interface OutputLength {
  /** Events with output. */
  events: number;
  /** UTF-16 units, as in a string's length. */
  characters: number;
}

/** Longer events are rare. */
const maxLength = 1024;
/** A stream whose every event has a number of its own repeats none. */
const maxLearned = 8;

/** A JSON string between its quotes. */
const string = String.raw`([^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\x00-\x1f]*)*)`;
/** The Responses API numbers its events. */
const number = /(?<="sequence_number":)\d+/;

/**
 * Knows the events of a stream that differ from one that was parsed only in the text of their output, as nearly all do. A
 * look at one takes a tenth of the time that parsing it takes. Removed: the same by hand, which took 0.1 µs less.
 */
export class RepeatedEvent {
  #pattern: RegExp | undefined;
  /** How many were learned since one was repeated. */
  #learned = 0;

  /**
   * @param json of an event that changes nothing but how much output there is
   * @param text all of its output, once, or as in newer vLLM under two names
   */
  learn(json: Uint8Array, text: string): void {
    if (this.#learned === maxLearned || json.length > maxLength) return;
    const pieces = utf8(json).split(JSON.stringify(text));
    // It may be a name, or what is between a name and its value, such as `":"`.
    const isSure = pieces.slice(0, -1).every((piece) => /: ?$/.test(piece));
    // With an escape in another place, the text may be written in another way, and what was found is something else.
    if (pieces.length === 1 || !isSure || pieces.some((piece) => piece.includes("\\"))) return;
    const [first = "", ...others] = pieces.map((piece) =>
      piece
        .split(number)
        .map(RegExp.escape)
        .join(String.raw`\d+`),
    );
    const data = `${first}"${string}"${others.join(String.raw`"\1"`)}`;
    // The name of an event says nothing that its JSON text does not say.
    this.#pattern = new RegExp(String.raw`(?:e.*\n)?data: ${data}(?:\n\n|\r\n\r\n)`, "y");
    this.#learned += 1;
  }

  /** @param events whole ones @returns undefined unless each is such an event */
  lengthOf(events: Uint8Array): OutputLength | undefined {
    const pattern = this.#pattern;
    if (pattern === undefined) return undefined;
    const length: OutputLength = { events: 0, characters: 0 };
    const all = utf8(events);
    for (pattern.lastIndex = 0; pattern.lastIndex < all.length;) {
      const text = pattern.exec(all)?.[1];
      if (text === undefined) return undefined;
      length.events += text === "" ? 0 : 1;
      length.characters += text.includes("\\") ? (JSON.parse(`"${text}"`) as string).length : text.length;
    }
    this.#learned = 0;
    return length;
  }
}
