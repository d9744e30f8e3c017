import { hasMember, indexOfBytes, isWhiteSpace, latin1, skipLeading, utf8 } from "../json/bytes.ts";
import { createJsonSkipper, createStringEnd } from "../json/skipper.ts";
import { createFollowedDocument, maxNameLength as longestName } from "./followed-document.ts";

/** Finds the usage in a JSON text that arrives in pieces, cut anywhere, of any length, in constant memory. */
export interface JsonUsageParser {
  push(bytes: Uint8Array): void;
  /**
   * What `JSON.parse` would return for the text so far, without the members that `readUsage` ignores. A number that is
   * still unfinished is left out.
   */
  document(): unknown;
}

/** The longest name that is followed, with every letter written as `\u0070`. */
const maxNameLength = 6 * longestName;
/** The longest id that is kept, with escapes. */
const maxIdLength = 6 * 512;
/** No valid count is longer. */
const maxNumberLength = 64;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const closeBracket = 0x5d;
const openBracket = 0x5b;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Skips everything that is not followed without decoding it, and keeps no more of a name than it can match. */
export function createJsonUsageParser(): JsonUsageParser {
  const document = createFollowedDocument();
  const skipper = createJsonSkipper();
  const nameEnd = createStringEnd();
  const idEnd = createStringEnd();
  /** The letters of a name, id or number whose end has not arrived. */
  let partial = "";
  /** Reads the next token and sets the step after it. @returns where the next step starts */
  let step = readValue;

  /** One character more than `maxLength` shows that the token is too long. */
  function keepPart(bytes: Uint8Array, from: number, to: number, maxLength: number): void {
    const missing = maxLength + 1 - partial.length;
    if (missing > 0) partial += latin1(bytes, from, Math.min(to, from + missing));
  }

  function readValue(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (byte === colon) return at + 1;
    if (byte === openBrace && document.openObject()) {
      step = readMember;
      return at + 1;
    }
    if (byte === openBracket && document.openArray()) {
      step = readElement;
      return at + 1;
    }
    document.setValue(null);
    if (byte === quote && document.isAtId()) {
      partial = "";
      step = readId;
      return at + 1;
    }
    if (skipper.open(byte)) return endValue(at + 1);
    partial = "";
    step = readNumber;
    return at;
  }

  function endValue(at: number): number {
    if (document.isInArray()) step = readElement;
    else step = document.isOpen() ? readMember : skipRest;
    return at;
  }

  function readElement(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    // In broken JSON a brace may stand there.
    if (byte === closeBracket || byte === closeBrace) {
      document.close();
      return endValue(at + 1);
    }
    if (byte === comma) return at + 1;
    document.beginElement();
    step = readValue;
    return at;
  }

  function readMember(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    if (bytes[at] === quote) {
      partial = "";
      step = readName;
    } else if (bytes[at] === closeBrace) {
      document.close();
      endValue(at);
    }
    return at + 1;
  }

  function readName(bytes: Uint8Array, at: number): number {
    const end = nameEnd.find(bytes, at);
    keepPart(bytes, at, end, maxNameLength);
    if (end === bytes.length) return end;
    document.beginMember(unescapeName(partial));
    step = readValue;
    return end + 1;
  }

  function readId(bytes: Uint8Array, at: number): number {
    const end = idEnd.find(bytes, at);
    keepPart(bytes, at, end, maxIdLength);
    if (end === bytes.length) return end;
    if (partial.length <= maxIdLength) document.setValue(parse(`"${partial}"`));
    return endValue(end + 1);
  }

  /** Also reads true, false and null, which are not counts. */
  function readNumber(bytes: Uint8Array, from: number): number {
    const isCount = document.isAtCount();
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (isCount) keepPart(bytes, from, end, maxNumberLength);
    if (end === bytes.length) return end;
    if (isCount) document.setValue(parseNumber(partial));
    return endValue(end);
  }

  return {
    push(bytes) {
      let at = 0;
      while (at < bytes.length) at = skipper.isOpen() ? skipper.skip(bytes, at) : step(bytes, at);
    },
    document: document.value,
  };
}

function skipRest(bytes: Uint8Array): number {
  return bytes.length;
}

function endsNumber(byte: number | undefined): boolean {
  return byte === comma || byte === closeBrace || byte === closeBracket || isWhiteSpace(byte);
}

function unescapeName(raw: string): string {
  if (!raw.includes("\\")) return raw;
  const parsed = parse(`"${raw}"`);
  return typeof parsed === "string" ? parsed : "";
}

function parseNumber(raw: string): unknown {
  return raw.length > maxNumberLength ? undefined : parse(raw);
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
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
  if (bytes.length > maxParsedLength) return undefined;
  try {
    return JSON.parse(utf8(bytes));
  } catch {
    return undefined;
  }
}
