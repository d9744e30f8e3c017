import { parseJson } from "../../domain/json.ts";
import { hasMember, indexOfBytes, isWhiteSpace, latin1, skipLeading, utf8 } from "../json/bytes.ts";
import { createJsonSkipper, createStringEnd } from "../json/skipper.ts";
import {
  cachedTimingName,
  cacheWriteName,
  partNames,
  tokenCountNames,
  totalName,
  usageHolders,
} from "./event-usage.ts";

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
