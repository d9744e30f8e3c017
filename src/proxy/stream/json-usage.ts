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

/** Finds the usage in a JSON text that arrives in pieces, cut anywhere, of any length, in bounded memory. */
export type JsonUsageParser = ReturnType<typeof createJsonUsageParser>;

/** The members that are kept, wherever they stand: usage and how a response failed are read from few places of these. */
const followed: ReadonlySet<string> = new Set([
  ...usageHolders,
  ...["usage", "x_groq", "choices", "timings", "id", "type", "error", "code"],
  ...Object.values(tokenCountNames).flat(),
  ...Object.values(partNames).flatMap(({ names, holders, detail }) => [...names, ...holders, detail]),
  ...[totalName, cacheWriteName, cachedTimingName],
]);

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

/** Reads the next token and sets the step after it. @returns where the next step starts */
type Step = (bytes: Uint8Array, from: number) => number;

/** Skips everything that is not followed without decoding it, and keeps no more of a name than it can match. */
export function createJsonUsageParser() {
  const skipper = createJsonSkipper();
  const stringEnd = createStringEnd();
  const root: Record<string, unknown> = {};
  /** Around the next value, the outermost first. Of an array, the latest element is kept. */
  const open: (Record<string, unknown> | unknown[])[] = [root];
  let [name, text, values] = ["document", "", 0];
  /** The value that is being read. */
  let isKept = true;
  let step: Step = readValue;

  function set(value: unknown): void {
    const around = open.at(-1) ?? root;
    if (Array.isArray(around)) around[0] = value;
    else around[name] = value;
  }

  /** Keeps one character more than a text may have, which shows that it is too long. */
  function add(bytes: Uint8Array, from: number, to: number): void {
    const missing = maxTextLength + 1 - text.length;
    if (missing > 0) text += latin1(bytes, from, Math.min(to, from + missing));
  }

  function readValue(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (byte === colon) return at + 1;
    isKept = (open.length === 1 || Array.isArray(open.at(-1)) || followed.has(name)) && values++ < maxValues;
    if (isKept && (byte === openBrace || byte === openBracket)) {
      const opened = byte === openBrace ? {} : [];
      set(opened);
      open.push(opened);
      return endValue(at + 1);
    }
    // If a name comes twice, the last one counts, whatever its value.
    if (isKept) set(null);
    text = "";
    if (isKept && byte === quote) {
      step = readString;
      return at + 1;
    }
    if (skipper.open(byte)) return endValue(at + 1);
    step = readNumber;
    return at;
  }

  function endValue(at: number): number {
    step = open.length === 1 ? skipRest : Array.isArray(open.at(-1)) ? readElement : readMember;
    return at;
  }

  function readElement(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    // In broken JSON a brace may stand there.
    if (byte === closeBracket || byte === closeBrace) {
      open.pop();
      return endValue(at + 1);
    }
    if (byte === comma) return at + 1;
    step = readValue;
    return at;
  }

  function readMember(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    text = "";
    if (bytes[at] === quote) step = readName;
    if (bytes[at] !== closeBrace) return at + 1;
    open.pop();
    return endValue(at + 1);
  }

  function readName(bytes: Uint8Array, at: number): number {
    const end = stringEnd.find(bytes, at);
    add(bytes, at, end);
    if (end === bytes.length) return end;
    name = text.includes("\\") ? String(parseJson(`"${text}"`)) : text;
    step = readValue;
    return end + 1;
  }

  function readString(bytes: Uint8Array, at: number): number {
    const end = stringEnd.find(bytes, at);
    add(bytes, at, end);
    if (end === bytes.length) return end;
    if (text.length <= maxTextLength) set(parseJson(`"${text}"`));
    return endValue(end + 1);
  }

  /** True, false and null too. */
  function readNumber(bytes: Uint8Array, from: number): number {
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (isKept) add(bytes, from, end);
    if (end === bytes.length) return end;
    if (isKept) set(text.length <= maxTextLength ? parseJson(text) : undefined);
    return endValue(end);
  }

  return {
    push(bytes: Uint8Array): void {
      let at = 0;
      while (at < bytes.length) at = skipper.isOpen() ? skipper.skip(bytes, at) : step(bytes, at);
    },
    /**
     * What `JSON.parse` would return for the text so far, without the members that are not followed, and of arrays with the
     * last element alone. A number that is still unfinished is left out.
     */
    document(): unknown {
      // The counts that would show that a total is not alone may still be missing.
      for (const one of open) if (!Array.isArray(one)) one[totalName] = undefined;
      return root["document"];
    },
  };
}

const skipRest: Step = (bytes) => bytes.length;

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
