import { cacheWriteName, findCount, isObject, tokenCountNames } from "./usage.ts";
import { utf8 } from "../json/bytes.ts";

type SeenOutput = typeof nothingSeen;

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

interface ReportedChoice {
  input: number;
  output: number;
}

/** Bounds the memory of a stream whose choices have ever new numbers. */
const maxChoices = 4096;

/** Follows the output for keys with limits of tokens: sees each document in its order, and skims what is like one before. */
export class OutputObserver {
  /**
   * What choices report; undefined: the choice has begun, and has no usage. vLLM and SGLang report one total after the last
   * choice, and, if they are asked to, its own count beside each choice; llama.cpp reports each choice by itself, in a chat
   * by a frame of only usage after its end. So usage beside a choice is that choice's, and a frame of only usage belongs to
   * the choice that ended before it, unless that one has usage already.
   */
  readonly #choices = new Map<number, ReportedChoice | undefined>();
  #lastEnded: number | undefined;
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
    const { message, usage, choices } = document;
    const opening = isObject(message) && isObject(message["usage"]) ? message["usage"] : undefined;
    if (opening !== undefined) this.#isOpening = true;
    if (isObject(usage) && typeof usage["output_tokens"] === "number") this.#isOpening = false;
    for (const one of [opening, usage]) {
      if (isObject(one)) this.#cacheWriteTokens = findCount(one, [cacheWriteName]) ?? this.#cacheWriteTokens;
    }
    if (unreadBytes > 0) {
      if (this.isKnown) this.#add(1, unreadBytes);
      return;
    }
    let hasEnded = false;
    if (Array.isArray(choices)) hasEnded = this.#seeChoices(choices, usage);
    // The end of a part repeats it.
    else if (this.isKnown) this.#addTexts(document, eventMembers);
    else this.#findOutput(document);
    const [text, ...others] = this.#texts;
    this.#texts = [];
    const isOnlyText = text !== undefined && others.length === 0 && !hasEnded;
    if (isOnlyText && json !== undefined && !isObject(message) && !isObject(usage)) this.#repeated.learn(json, text);
  }

  skim(whole: Uint8Array): boolean {
    const length = this.#repeated.lengthOf(whole);
    if (length !== undefined) this.#add(length.events, length.characters);
    return length !== undefined;
  }

  seen(): SeenOutput {
    let [reported, input, output] = [0, 0, 0];
    for (const choice of this.#choices.values()) {
      if (choice === undefined) continue;
      reported += 1;
      input += choice.input;
      output += choice.output;
    }
    return {
      estimatedTokens: Math.max(this.#events, Math.ceil(this.#characters / charactersPerToken)),
      reportedTokens: output,
      choicesInputTokens: reported < 2 ? 0 : input / reported,
      isOpening: this.#isOpening,
      hasUnreportedChoice: reported < this.#choices.size,
      cacheWriteTokens: this.#cacheWriteTokens,
    };
  }

  #add(events: number, characters: number): void {
    this.#events += events;
    this.#characters += characters;
  }

  /** @returns whether there are any */
  #addTexts(of: Record<string, unknown>, members: readonly string[]): boolean {
    const before = this.#texts.length;
    for (const name of members) addTextsOf(of[name], this.#texts, 1);
    let characters = 0;
    for (let at = before; at < this.#texts.length; at++) characters += this.#texts[at]?.length ?? 0;
    if (characters > 0) this.#add(1, characters);
    return characters > 0;
  }

  /** In its first two levels. Where there are deltas, what else there is of a text repeats them. */
  #findOutput(document: Record<string, unknown>): void {
    const levels = [document, ...Object.values(document).filter(isObject)];
    if (levels.some((level) => this.#addTexts(level, ["delta"]))) this.#hasDeltas = true;
    else if (!this.#hasDeltas) levels.some((level) => this.#addTexts(level, foundMembers));
  }

  /** @returns whether one of them has ended */
  #seeChoices(list: readonly unknown[], usage: unknown): boolean {
    const [choices, endedBefore] = [this.#choices, this.#lastEnded];
    let [hasEnded, hasOutput, count, last] = [false, false, 0, 0];
    for (const choice of list) {
      if (!isObject(choice)) continue;
      count += 1;
      last = typeof choice["index"] === "number" ? choice["index"] : 0;
      if (!choices.has(last) && choices.size < maxChoices) choices.set(last, undefined);
      if (this.#addTexts(choice, choiceMembers)) hasOutput = true;
      if (typeof choice["finish_reason"] === "string") [hasEnded, this.#lastEnded] = [true, last];
    }
    const output = isObject(usage) ? findCount(usage, tokenCountNames.outputTokens) : undefined;
    if (!isObject(usage) || output === undefined) return hasEnded;
    const reported = { input: findCount(usage, tokenCountNames.inputTokens) ?? 0, output };
    const ended = this.#lastEnded;
    // LiteLLM and OpenRouter send a frame of usage alone with an empty choice.
    const isAlone = count === 0 || (endedBefore !== undefined && endedBefore === ended && !hasOutput);
    if (!isAlone && count === 1) choices.set(last, reported);
    else if (isAlone && ended !== undefined && choices.get(ended) === undefined) choices.set(ended, reported);
    return hasEnded;
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

/** Adds text, reasoning, tool calls and refusals in a member of an event or a choice; none is empty. */
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
interface OutputLength {
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
    const frame = utf8(json).replaceAll(JSON.stringify(text), "\n");
    // It may be a name, or what is between a name and its value, such as `":"`. And with an escape in another place, the
    // text may be written in another way, and what was found is something else.
    if (!frame.includes("\n") || /(?<!: ?)\n|\\/.test(frame)) return;
    const data = frame
      .split(number)
      .map(RegExp.escape)
      .join(String.raw`\d+`)
      .replace(String.raw`\n`, `"${string}"`)
      .replaceAll(String.raw`\n`, String.raw`"\1"`);
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
