import { isWhiteSpace, latin1, skipLeading } from "./bytes.ts";
import { backslash, braceClose, braceOpen, bracketClose, bracketOpen, colon, comma, quote } from "./slots.ts";

/** A longer name is not followed, and a longer text is left out: an id with each of its characters escaped is as long. */
const maxTextLength = 6 * 512;
/** Nothing is kept after so many values; no response comes near that. */
const maxValues = 10_000;

/**
 * What the next byte is part of. Between tokens: `value`; `element` and `member`, of the open array or object; `rest`, after
 * the document. `container` is one that is skipped.
 */
type Step = "value" | "element" | "member" | "name" | "string" | "number" | "container" | "rest";

/**
 * Parses a JSON text that arrives in pieces, cut anywhere, of any length, in bounded memory. Skips everything that is not
 * followed without decoding it, and keeps no more of a name than it can match.
 */
export class PushParser {
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
  /** Of what is skipped: arrays and objects that are open, and whether it is in a string of theirs. */
  #depth = 0;
  #inString = false;
  /** The last piece ended inside an escape, so the next byte cannot be the closing quote. */
  #inEscape = false;

  /**
   * @param followed members that are kept, wherever they stand
   * @param unsure one that tells nothing until its object ends
   * @param parse a string, number or literal; undefined if it is none
   */
  constructor(
    readonly followed: ReadonlySet<string>,
    readonly unsure: string,
    readonly parse: (text: string) => unknown,
  ) {}

  push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) at = this.#read(bytes, at);
  }

  /**
   * What `JSON.parse` would return for the text so far, without the members that are not followed, and of arrays with the
   * last element alone. A number that is still unfinished is left out.
   */
  document(): unknown {
    for (const one of this.#open) if (!Array.isArray(one)) one[this.unsure] = undefined;
    return this.#root["document"];
  }

  /** Reads the next token and sets the step after it. @returns where the next one starts */
  #read(bytes: Uint8Array, at: number): number {
    if (this.#step === "rest") return bytes.length;
    if (this.#step === "number") return this.#readNumber(bytes, at);
    if (this.#step === "name" || this.#step === "string") return this.#readString(bytes, at);
    return this.#step === "container" ? this.#skip(bytes, at) : this.#readNext(bytes, skipLeading(bytes, at));
  }

  /** @param at of the first byte that is no white space */
  #readNext(bytes: Uint8Array, at: number): number {
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (this.#step === "value") return byte === colon ? at + 1 : this.#beginValue(byte, at);
    // In broken JSON a brace may end an array.
    if (byte === braceClose || (byte === bracketClose && this.#step === "element")) {
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
    const isFollowed = around === this.#root || Array.isArray(around) || this.followed.has(this.#name);
    const isContainer = byte === braceOpen || byte === bracketOpen;
    this.#isKept = isFollowed && this.#values++ < maxValues;
    this.#text = "";
    if (this.#isKept && isContainer) {
      const opened = byte === braceOpen ? {} : [];
      this.#set(opened);
      this.#open.push(opened);
      return this.#endValue(at + 1);
    }
    // If a name comes twice, the last one counts, whatever its value.
    if (this.#isKept) this.#set(null);
    if (isContainer) this.#depth = 1;
    this.#step = isContainer ? "container" : byte === quote ? "string" : "number";
    return this.#step === "number" ? at : at + 1;
  }

  #endValue(at: number): number {
    const around = this.#open.at(-1);
    this.#step = around === this.#root ? "rest" : Array.isArray(around) ? "element" : "member";
    return at;
  }

  #readString(bytes: Uint8Array, at: number): number {
    const end = this.#stringEnd(bytes, at);
    const isName = this.#step === "name";
    if (isName || this.#isKept) this.#add(bytes, at, end);
    if (end === bytes.length) return end;
    const text = this.#text.includes("\\") ? this.parse(`"${this.#text}"`) : this.#text;
    if (isName) {
      this.#name = String(text);
      this.#step = "value";
      return end + 1;
    }
    if (this.#isKept && this.#text.length <= maxTextLength) this.#set(text);
    return this.#endValue(end + 1);
  }

  /** @returns the position of the closing quote; the length if the string continues in the next piece */
  #stringEnd(bytes: Uint8Array, from: number): number {
    let at = this.#inEscape ? from + 1 : from;
    for (;;) {
      const next = bytes.indexOf(quote, at);
      const end = next < 0 ? bytes.length : next;
      let backslashes = 0;
      while (end - backslashes > at && bytes[end - backslashes - 1] === backslash) backslashes++;
      this.#inEscape = backslashes % 2 === 1;
      if (next < 0 || !this.#inEscape) return end;
      at = end + 1;
    }
  }

  #skip(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      if (this.#inString) {
        at = this.#stringEnd(bytes, at);
        this.#inString = at === bytes.length;
        continue;
      }
      const byte = bytes[at];
      if (byte === quote) this.#inString = true;
      else if (byte === bracketOpen || byte === braceOpen) this.#depth++;
      else if ((byte === bracketClose || byte === braceClose) && --this.#depth === 0) return this.#endValue(at + 1);
    }
    return bytes.length;
  }

  /** True, false and null too. */
  #readNumber(bytes: Uint8Array, from: number): number {
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (this.#isKept) this.#add(bytes, from, end);
    if (end === bytes.length) return end;
    if (this.#isKept) this.#set(this.#text.length <= maxTextLength ? this.parse(this.#text) : undefined);
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
  return byte === comma || byte === braceClose || byte === bracketClose || isWhiteSpace(byte);
}
