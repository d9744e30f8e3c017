import { usageHolders, usageNames } from "./usage.ts";

/** Finds the usage in a JSON text that comes in pieces, cut anywhere, of any length, in constant memory. */
export interface UsageScanner {
  push(bytes: Uint8Array): void;
  /**
   * What `JSON.parse` would give of the text so far, less everything that `readUsage` does not look at. A number that
   * is still open at its end is left out.
   */
  document(): unknown;
}

/** The members of an object that are followed; a count is a number at the end of the path. */
type Shape = ReadonlyMap<string, Shape | "count">;

/** A followed object that is open, and what it holds so far. */
interface OpenObject {
  shape: Shape;
  members: Record<string, unknown>;
}

const countNames = [...usageNames.inputTokens, ...usageNames.outputTokens];
const usageShape: Shape = new Map(countNames.map((name) => [name, "count"]));
const documentShape: Shape = new Map([
  ["usage", usageShape],
  ...usageHolders.map((holder) => [holder, new Map([["usage", usageShape]])] as const),
]);

/** The longest name that is followed, with every letter written as `\u0070`. */
const maxNameLength = 6 * Math.max(...countNames.map((name) => name.length));
/** No count that can be true is longer. */
const maxNumberLength = 64;

const code = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openBracket: 0x5b,
  backslash: 0x5c,
  closeBracket: 0x5d,
  openBrace: 0x7b,
  closeBrace: 0x7d,
} as const;

/** Strings and whatever is not followed are skipped without being decoded, and names cost no more than they can match. */
export function createUsageScanner(): UsageScanner {
  const root: OpenObject = { shape: new Map([["document", documentShape]]), members: {} };
  const open: OpenObject[] = [];
  let parent = root;
  let name = "document";
  let number = "";
  /** How many brackets and braces that are not followed are open. */
  let skippedDepth = 0;
  let inSkippedString = false;
  /** The piece before ended in the middle of an escape: the next byte of the string ends nothing. */
  let inEscape = false;
  let step = readValue;

  function push(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      if (inSkippedString) at = skipString(bytes, at);
      else if (skippedDepth > 0) at = skipNested(bytes, at);
      else at = step(bytes, at);
    }
  }

  function readValue(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (byte === code.colon) return at + 1;
    const followed = parent.shape.get(name);
    // Where a name comes twice, the last one holds, whatever its value.
    if (followed !== undefined) parent.members[name] = null;
    if (byte === code.openBrace && followed !== undefined && followed !== "count") return openFollowed(followed, at);
    if (byte !== code.quote && byte !== code.openBrace && byte !== code.openBracket) {
      number = "";
      step = readNumber;
      return at;
    }
    if (byte === code.quote) inSkippedString = true;
    else skippedDepth = 1;
    endValue();
    return at + 1;
  }

  function openFollowed(shape: Shape, at: number): number {
    const object: OpenObject = { shape, members: {} };
    parent.members[name] = object.members;
    open.push(parent);
    parent = object;
    step = readMember;
    return at + 1;
  }

  function endValue(): void {
    step = parent === root ? skipRest : readMember;
  }

  function readMember(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    if (bytes[at] === code.quote) {
      name = "";
      step = readName;
    } else if (bytes[at] === code.closeBrace) {
      parent = open.pop() ?? root;
      endValue();
    }
    return at + 1;
  }

  function readName(bytes: Uint8Array, at: number): number {
    const end = findStringEnd(bytes, at);
    if (name.length <= maxNameLength) name += latin1(bytes, at, end);
    if (end === bytes.length) return end;
    name = unescapeName(name);
    step = readValue;
    return end + 1;
  }

  /** Reads true, false and null too: what is no number is no count. */
  function readNumber(bytes: Uint8Array, from: number): number {
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (parent.shape.get(name) === "count" && number.length <= maxNumberLength) number += latin1(bytes, from, end);
    if (end === bytes.length) return end;
    if (parent.shape.get(name) === "count") parent.members[name] = parseNumber(number);
    endValue();
    return end;
  }

  function skipRest(bytes: Uint8Array): number {
    return bytes.length;
  }

  function skipNested(bytes: Uint8Array, from: number): number {
    for (let at = from; at < bytes.length; at++) {
      const byte = bytes[at];
      if (byte === code.quote) {
        inSkippedString = true;
        return at + 1;
      }
      if (byte === code.openBrace || byte === code.openBracket) skippedDepth++;
      else if ((byte === code.closeBrace || byte === code.closeBracket) && --skippedDepth === 0) return at + 1;
    }
    return bytes.length;
  }

  function skipString(bytes: Uint8Array, at: number): number {
    const end = findStringEnd(bytes, at);
    inSkippedString = end === bytes.length;
    return end + 1;
  }

  /** @returns where the closing quote is; the length where the string goes on */
  function findStringEnd(bytes: Uint8Array, from: number): number {
    let at = inEscape ? from + 1 : from;
    for (;;) {
      const next = bytes.indexOf(code.quote, at);
      const end = next < 0 ? bytes.length : next;
      let backslashes = 0;
      while (end - backslashes > at && bytes[end - backslashes - 1] === code.backslash) backslashes++;
      inEscape = backslashes % 2 === 1;
      if (next < 0 || !inEscape) return end;
      at = end + 1;
      inEscape = false;
    }
  }

  return { push, document: () => root.members.document };
}

/** @returns where white space and byte order marks end; the length where nothing else follows */
export function skipLeading(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isWhiteSpace(bytes[at]) || isMarkByte(bytes[at])) at++;
  return at;
}

function isMarkByte(byte: number | undefined): boolean {
  return byte === 0xef || byte === 0xbb || byte === 0xbf;
}

function isWhiteSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function endsNumber(byte: number | undefined): boolean {
  return byte === code.comma || byte === code.closeBrace || byte === code.closeBracket || isWhiteSpace(byte);
}

function latin1(bytes: Uint8Array, from: number, to: number): string {
  return Buffer.prototype.latin1Slice.call(bytes, from, to);
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

const escape = Buffer.from("\\u00");
const escapedLetters = [Buffer.from("\\u006"), Buffer.from("\\u007")];
const usageName = Buffer.from('usage"');

/**
 * Whether bytes that are no part of a longer JSON text may hold usage. Nearly every event of a stream holds none, and to
 * look is many times cheaper than to parse. May say yes where there is none, never the reverse.
 */
export function mentionsUsage(bytes: Uint8Array): boolean {
  // "us\u0061ge" is the same name.
  return indexOf(bytes, usageName, 0) >= 0 || indexOf(bytes, escape, 0) >= 0;
}

/** The same of a whole JSON text, looking closer: whether a member of that name is an object. */
export function mayHoldUsage(json: Uint8Array): boolean {
  if (hasMember(json, usageName, code.openBrace)) return true;
  return indexOf(json, escape, 0) >= 0 && escapedLetters.some((letter) => indexOf(json, letter, 0) >= 0);
}

/**
 * Whether a member whose name ends so is there, at whatever depth, and its value begins with that byte. A text that
 * quotes JSON has no such member: a quote in it is escaped.
 * @param nameEnd the name's last letters and its closing quote
 */
export function hasMember(json: Uint8Array, nameEnd: Uint8Array, firstByte?: number): boolean {
  for (let at = indexOf(json, nameEnd, 0); at >= 0; at = indexOf(json, nameEnd, at + 1)) {
    let next = at + nameEnd.length;
    while (isWhiteSpace(json[next]) || json[next] === code.colon) next++;
    if (firstByte === undefined || json[next] === firstByte) return true;
  }
  return false;
}

function indexOf(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  return Buffer.prototype.indexOf.call(bytes, wanted, from);
}
