// Reads token usage out of what backends send: out of parsed JSON (here), out of JSON in pieces (below), and
// out of compressed bodies (`body-kind.ts`), whatever members a server reports it in.
//
// It keeps true: a count that is impossible is none; a long or hostile text takes no more memory than a short one, and
// one that is broken or ends early is read as far as possible. What holds no usage is mostly found out without parsing.
// It has no I/O, and does not decide what counts: `proxy/response/count.ts` does.

import { noUsage, pickUsage, type Usage, type UsageField, type UsagePart } from "../../domain/usage.ts";
import { parseJson } from "../../domain/json.ts";
import { hasMember, indexOfBytes, isWhiteSpace, latin1, skipLeading, utf8 } from "../json/bytes.ts";
import { createJsonSkipper, createStringEnd } from "../json/skipper.ts";

/** A response or event has its `usage` at the top level, in a Messages `message` or in a Responses `response`. */
export const usageHolders = ["message", "response"] as const;

/** Chat, completions and embeddings use prompt and completion; Messages and Responses use input and output. */
export const tokenCountNames = {
  inputTokens: ["prompt_tokens", "input_tokens"],
  outputTokens: ["completion_tokens", "output_tokens"],
} as const;

export const totalName = "total_tokens";

/** Input that was written into a cache: of the Messages API, beside the input. It is part of no count, but of a charge. */
export const cacheWriteName = "cache_creation_input_tokens";

/** llama.cpp's, beside usage: a part of the input. */
export const cachedTimingName = "cache_n";

/** The names of a part of the counts: at the top level of `usage`, or as a member of its details. */
interface PartNames {
  names: readonly string[];
  holders: readonly string[];
  detail: string;
}

export const partNames: Readonly<Record<UsagePart, PartNames>> = {
  cachedInputTokens: {
    // Of the Messages API, DeepSeek, and Moonshot.
    names: ["cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens"],
    holders: ["prompt_tokens_details", "input_tokens_details"],
    detail: "cached_tokens",
  },
  reasoningTokens: {
    names: [],
    holders: ["completion_tokens_details", "output_tokens_details"],
    detail: "reasoning_tokens",
  },
};

/** A larger count in one response is impossible: added up, such counts would overflow the totals. */
const maxCount = 1_000_000_000;

/**
 * Adds the counts of one parsed response to those seen before. A positive count replaces an earlier one; null, zero and
 * impossible values never do: servers send them before the real value and, on errors, after it.
 */
export function readUsage(value: unknown, seen: Usage): Usage {
  if (!isObject(value)) return seen;
  const found =
    [readReported(value, noUsage), readElsewhere(value, noUsage), readTotal(value)].find(hasCounts) ?? noUsage;
  return {
    inputTokens: found.inputTokens === 0 ? seen.inputTokens : found.inputTokens,
    outputTokens: found.outputTokens === 0 ? seen.outputTokens : found.outputTokens,
    cachedInputTokens: found.cachedInputTokens ?? seen.cachedInputTokens,
    reasoningTokens: found.reasoningTokens ?? seen.reasoningTokens,
  } satisfies Record<UsageField, unknown>;
}

/** At the places that nearly all servers use. */
function readReported(value: Record<string, unknown>, seen: Usage): Usage {
  let usage = readCounts(value.usage, seen);
  for (const holder of usageHolders) {
    const held = value[holder];
    if (isObject(held)) usage = readCounts(held.usage, usage);
  }
  const timings = usage === seen ? undefined : value["timings"];
  if (!isObject(timings)) return usage;
  return { ...usage, cachedInputTokens: usage.cachedInputTokens ?? findCount(timings, [cachedTimingName]) };
}

/** Moonshot reports the usage of a stream in its last choice, Groq under `x_groq`. */
function readElsewhere(value: Record<string, unknown>, seen: Usage): Usage {
  const usage = isObject(value.x_groq) ? readCounts(value.x_groq.usage, seen) : seen;
  const choice: unknown = Array.isArray(value.choices) ? value.choices.at(-1) : undefined;
  return isObject(choice) ? readCounts(choice.usage, usage) : usage;
}

/** Embeddings and reranking have no output, so some servers report only the total. */
function readTotal({ usage }: Record<string, unknown>): Usage {
  if (!isObject(usage)) return noUsage;
  const isAlone = Object.values(tokenCountNames).every((names) =>
    names.every((name) => typeof usage[name] !== "number"),
  );
  return isAlone ? { inputTokens: findCount(usage, [totalName]) ?? 0, outputTokens: 0 } : noUsage;
}

function hasCounts({ inputTokens, outputTokens }: Usage): boolean {
  return inputTokens > 0 || outputTokens > 0;
}

/** Usage while a stream is being read. */
export interface StreamUsage extends Usage, UsageShape {
  /** Counts only if no event has usage at a usual place. */
  elsewhere: Usage;
}

export const noStreamUsage: StreamUsage = { ...noUsage, outputIsOpening: false, isAlone: false, elsewhere: noUsage };

/** What the usage of a stream looks like so far. */
export interface UsageShape {
  /** The output is the placeholder that a Messages stream opens with. */
  outputIsOpening: boolean;
  /** It came in an event without choices, or with empty ones, as it does if it is asked for. */
  isAlone: boolean;
}

export const usageOfStream = (seen: StreamUsage): Usage => (hasCounts(seen) ? pickUsage(seen) : seen.elsewhere);

/**
 * Like `readUsage`, for the events of a stream in their order. Only the placeholder in `message_start` is replaced by a
 * zero output, and only if the input is not zero too: a refusal ends with no output, an error with zeros for everything.
 * @param isWhole it has all that was sent, and not only what usage is read from
 */
export function readEventUsage(event: unknown, seen: StreamUsage, isWhole = true): StreamUsage {
  if (!isObject(event)) return seen;
  const usage = readReported(event, seen);
  const elsewhere = readElsewhere(event, seen.elsewhere);
  const isAlone = seen.isAlone || (isWhole && isUsageAlone(event));
  if (isObject(event.message)) return { ...usage, outputIsOpening: true, isAlone, elsewhere };
  const { outputIsOpening } = seen;
  if (!outputIsOpening || !isObject(event.usage)) return { ...usage, outputIsOpening, isAlone, elsewhere };
  const isRefusal = event.usage.output_tokens === 0 && event.usage.input_tokens !== 0;
  if (isRefusal) return { ...usage, outputTokens: 0, outputIsOpening: false, isAlone, elsewhere };
  const hasOutput = findCount(event.usage, tokenCountNames.outputTokens) !== undefined;
  return { ...usage, outputIsOpening: !hasOutput, isAlone, elsewhere };
}

function isUsageAlone({ usage, choices }: Record<string, unknown>): boolean {
  const hasOutput = isObject(usage) && findCount(usage, tokenCountNames.outputTokens) !== undefined;
  return hasOutput && Array.isArray(choices) && choices.every(isEmptyChoice);
}

function readCounts(counts: unknown, seen: Usage): Usage {
  if (!isObject(counts)) return seen;
  return {
    inputTokens: findCount(counts, tokenCountNames.inputTokens) ?? seen.inputTokens,
    outputTokens: findCount(counts, tokenCountNames.outputTokens) ?? seen.outputTokens,
    cachedInputTokens: findPart(counts, partNames.cachedInputTokens) ?? seen.cachedInputTokens,
    reasoningTokens: findPart(counts, partNames.reasoningTokens) ?? seen.reasoningTokens,
  } satisfies Record<UsageField, unknown>;
}

function findPart(counts: Record<string, unknown>, { names, holders, detail }: PartNames): number | undefined {
  const count = findCount(counts, names);
  if (count !== undefined) return count;
  for (const holder of holders) {
    const details = counts[holder];
    if (isObject(details)) return findCount(details, [detail]);
  }
  return undefined;
}

/** Undefined unless it is a possible count above zero. */
export function findCount(counts: Record<string, unknown>, names: readonly string[]): number | undefined {
  for (const name of names) {
    const count = counts[name];
    if (typeof count === "number" && Number.isInteger(count) && count > 0 && count <= maxCount) return count;
  }
  return undefined;
}

/** One that tells nothing, beside which LiteLLM and OpenRouter send usage. */
export function isEmptyChoice(choice: unknown): boolean {
  if (!isObject(choice)) return false;
  return Object.entries(choice).every(
    ([name, value]) => name === "index" || isEmpty(value) || (name === "delta" && isEmptyDelta(value)),
  );
}

function isEmptyDelta(delta: unknown): boolean {
  return isObject(delta) && Object.entries(delta).every(([name, value]) => name === "role" || isEmpty(value));
}

/** Null, or an empty string, array or object. */
export function isEmpty(value: unknown): boolean {
  if (value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}

/** The members that are kept, wherever they stand: usage and how a response failed are read from few places of these. */
const followed: ReadonlySet<string> = new Set(
  [
    usageHolders,
    ["usage", "x_groq", "choices", "timings", "id", "type", "error", "code"],
    Object.values(tokenCountNames),
    Object.values(partNames).map(({ names, holders, detail }) => [names, holders, detail]),
    [totalName, cacheWriteName, cachedTimingName],
  ].flat(3),
);

/** A longer name is none of these, and a longer text is left out: an id with each of its characters escaped is as long. */
const maxTextLength = 6 * 512;
/** Nothing is kept after so many values; no response comes near that. */
const maxValues = 10_000;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const closeBracket = 0x5d;
const openBracket = 0x5b;
const openBrace = 0x7b;
const closeBrace = 0x7d;

type Step = "value" | "element" | "member" | "name" | "string" | "number" | "rest";

/**
 * Finds the usage in a JSON text that arrives in pieces, cut anywhere, of any length, in bounded memory. Skips everything
 * that is not followed without decoding it, and keeps no more of a name than it can match.
 */
export class JsonUsageParser {
  readonly #skipper = createJsonSkipper();
  readonly #stringEnd = createStringEnd();
  readonly #root: Record<string, unknown> = {};
  /** Around the next value, the outermost first. Of an array, the latest element is kept. */
  readonly #open: (Record<string, unknown> | unknown[])[] = [this.#root];
  #step: Step = "value";
  #name = "document";
  /** Of the name or value that is being read. */
  #text = "";
  /** The value that is being read. */
  #isKept = true;
  #values = 0;

  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) at = this.#skipper.isOpen() ? this.#skipper.skip(bytes, at) : this.#read(bytes, at);
  }

  /**
   * What `JSON.parse` would return for the text so far, without the members that are not followed, and of arrays with the
   * last element alone. A number that is still unfinished is left out.
   */
  document(): unknown {
    // The counts that would show that a total is not alone may still be missing.
    for (const one of this.#open) if (!Array.isArray(one)) one[totalName] = undefined;
    return this.#root["document"];
  }

  /** Reads the next token and sets the step after it. @returns where the next one starts */
  #read(bytes: Uint8Array, at: number): number {
    if (this.#step === "rest") return bytes.length;
    if (this.#step === "number") return this.#readNumber(bytes, at);
    if (this.#step === "name" || this.#step === "string") return this.#readString(bytes, at);
    return this.#readNext(bytes, skipLeading(bytes, at));
  }

  /** @param at of the first byte that is no white space */
  #readNext(bytes: Uint8Array, at: number): number {
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (this.#step === "value") return byte === colon ? at + 1 : this.#beginValue(byte, at);
    // In broken JSON a brace may end an array.
    if (byte === closeBrace || (byte === closeBracket && this.#step === "element")) {
      this.#open.pop();
      return this.#endValue(at + 1);
    }
    if (this.#step === "element") {
      if (byte === comma) return at + 1;
      this.#step = "value";
      return at;
    }
    this.#text = "";
    if (byte === quote) this.#step = "name";
    return at + 1;
  }

  #beginValue(byte: number, at: number): number {
    const around = this.#open.at(-1);
    const isFollowed = around === this.#root || Array.isArray(around) || followed.has(this.#name);
    this.#isKept = isFollowed && this.#values++ < maxValues;
    this.#text = "";
    if (this.#isKept && (byte === openBrace || byte === openBracket)) {
      const opened = byte === openBrace ? {} : [];
      this.#set(opened);
      this.#open.push(opened);
      return this.#endValue(at + 1);
    }
    // If a name comes twice, the last one counts, whatever its value.
    if (this.#isKept) this.#set(null);
    if (this.#isKept && byte === quote) {
      this.#step = "string";
      return at + 1;
    }
    if (this.#skipper.open(byte)) return this.#endValue(at + 1);
    this.#step = "number";
    return at;
  }

  #endValue(at: number): number {
    const around = this.#open.at(-1);
    this.#step = around === this.#root ? "rest" : Array.isArray(around) ? "element" : "member";
    return at;
  }

  #readString(bytes: Uint8Array, at: number): number {
    const end = this.#stringEnd.find(bytes, at);
    this.#add(bytes, at, end);
    if (end === bytes.length) return end;
    const text = this.#text.includes("\\") ? parseJson(`"${this.#text}"`) : this.#text;
    if (this.#step === "name") {
      this.#name = String(text);
      this.#step = "value";
      return end + 1;
    }
    if (this.#text.length <= maxTextLength) this.#set(text);
    return this.#endValue(end + 1);
  }

  /** True, false and null too. */
  #readNumber(bytes: Uint8Array, from: number): number {
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (this.#isKept) this.#add(bytes, from, end);
    if (end === bytes.length) return end;
    if (this.#isKept) this.#set(this.#text.length <= maxTextLength ? parseJson(this.#text) : undefined);
    return this.#endValue(end);
  }

  #set(value: unknown): void {
    const around = this.#open.at(-1) ?? this.#root;
    if (Array.isArray(around)) around[0] = value;
    else around[this.#name] = value;
  }

  /** Keeps one character more than a text may have, which shows that it is too long. */
  #add(bytes: Uint8Array, from: number, to: number): void {
    const missing = maxTextLength + 1 - this.#text.length;
    if (missing > 0) this.#text += latin1(bytes, from, Math.min(to, from + missing));
  }
}

function endsNumber(byte: number | undefined): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isWhiteSpace(byte);
}

const usageName = Buffer.from('usage"');
const escape = Buffer.from("\\u00");
const escapedLetters = [Buffer.from("\\u006"), Buffer.from("\\u007")];

/**
 * Whether bytes that are not part of a longer JSON text may hold usage. Nearly every event of a stream holds none, and
 * this check is many times cheaper than parsing. May return true if there is none, never false if there is some.
 */
export function mentionsUsage(bytes: Uint8Array): boolean {
  // "us\u0061ge" is the same name.
  return indexOfBytes(bytes, usageName, 0) >= 0 || indexOfBytes(bytes, escape, 0) >= 0;
}

/** The same for a whole JSON text, more exact: whether a member of that name is an object. */
export function mayHoldUsage(json: Uint8Array): boolean {
  if (hasMember(json, usageName, openBrace)) return true;
  return indexOfBytes(json, escape, 0) >= 0 && escapedLetters.some((letter) => indexOfBytes(json, letter, 0) >= 0);
}

export const maxParsedLength = 64 * 1024;

/**
 * The runtime parses a short JSON text in a tenth of the time that our own parser takes, which is for what is long, arrives
 * in pieces or is compressed. Undefined if the text is long, or not JSON: a truncated one may still hold its usage.
 */
export function findShortJson(bytes: Uint8Array): unknown {
  return bytes.length > maxParsedLength ? undefined : parseJson(utf8(bytes));
}
