import { hasMember, indexOfBytes, isWhiteSpace, latin1, skipLeading } from "../json/bytes.ts";
import { createJsonSkipper, createStringEnd } from "../json/skipper.ts";
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

/** The members of an object that are followed; a count is a number at the end of the path, an id a string. */
type Shape = ReadonlyMap<string, Shape | "count" | "id">;

/** A followed object that is open, and what it holds so far. */
interface OpenObject {
  shape: Shape;
  members: Record<string, unknown>;
}

const countNames = [...usageNames.inputTokens, ...usageNames.outputTokens];
const usageShape: Shape = new Map(countNames.map((name) => [name, "count"]));
const holderShape: Shape = new Map<string, Shape | "id">([
  ["id", "id"],
  ["usage", usageShape],
]);
const documentShape: Shape = new Map([...holderShape, ...usageHolders.map((holder) => [holder, holderShape] as const)]);

/** The longest name that is followed, with every letter written as `\u0070`. */
const maxNameLength = 6 * Math.max(...countNames.map((name) => name.length));
/** The longest id that is kept, with escapes. */
const maxIdLength = 6 * 512;
/** No count that can be true is longer. */
const maxNumberLength = 64;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Whatever is not followed is skipped without being decoded, and no more is kept of a name than it can match. */
export function createUsageScanner(): UsageScanner {
  const root: OpenObject = { shape: new Map([["document", documentShape]]), members: {} };
  const outer: OpenObject[] = [];
  const skipper = createJsonSkipper();
  const nameEnd = createStringEnd();
  const idEnd = createStringEnd();
  let parent = root;
  let name = "document";
  let number = "";
  let id = "";
  let step = readValue;

  function readValue(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (byte === colon) return at + 1;
    const followed = parent.shape.get(name);
    // Where a name comes twice, the last one holds, whatever its value.
    if (followed !== undefined) parent.members[name] = null;
    if (byte === openBrace && typeof followed === "object") return openObject(followed, at);
    if (byte === quote && followed === "id") {
      id = "";
      step = readId;
      return at + 1;
    }
    if (skipper.open(byte)) return endValue(at + 1);
    number = "";
    step = readNumber;
    return at;
  }

  function openObject(shape: Shape, at: number): number {
    const object: OpenObject = { shape, members: {} };
    parent.members[name] = object.members;
    outer.push(parent);
    parent = object;
    step = readMember;
    return at + 1;
  }

  function endValue(at: number): number {
    step = parent === root ? skipRest : readMember;
    return at;
  }

  function readMember(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    if (bytes[at] === quote) {
      name = "";
      step = readName;
    } else if (bytes[at] === closeBrace) {
      parent = outer.pop() ?? root;
      endValue(at);
    }
    return at + 1;
  }

  function readName(bytes: Uint8Array, at: number): number {
    const end = nameEnd.find(bytes, at);
    if (name.length <= maxNameLength) name += latin1(bytes, at, end);
    if (end === bytes.length) return end;
    name = unescapeName(name);
    step = readValue;
    return end + 1;
  }

  function readId(bytes: Uint8Array, at: number): number {
    const end = idEnd.find(bytes, at);
    if (id.length <= maxIdLength) id += latin1(bytes, at, end);
    if (end === bytes.length) return end;
    if (id.length <= maxIdLength) parent.members[name] = parse(`"${id}"`);
    return endValue(end + 1);
  }

  /** Reads true, false and null too: what is no number is no count. */
  function readNumber(bytes: Uint8Array, from: number): number {
    const isCount = parent.shape.get(name) === "count";
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (isCount && number.length <= maxNumberLength) number += latin1(bytes, from, end);
    if (end === bytes.length) return end;
    if (isCount) parent.members[name] = parseNumber(number);
    return endValue(end);
  }

  return {
    push(bytes) {
      let at = 0;
      while (at < bytes.length) at = skipper.isOpen() ? skipper.skip(bytes, at) : step(bytes, at);
    },
    document: () => root.members.document,
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
 * Whether bytes that are no part of a longer JSON text may hold usage. Nearly every event of a stream holds none, and to
 * look is many times cheaper than to parse. May say yes where there is none, never the reverse.
 */
export function mentionsUsage(bytes: Uint8Array): boolean {
  // "us\u0061ge" is the same name.
  return indexOfBytes(bytes, usageName, 0) >= 0 || indexOfBytes(bytes, escape, 0) >= 0;
}

/** The same of a whole JSON text, looking closer: whether a member of that name is an object. */
export function mayHoldUsage(json: Uint8Array): boolean {
  if (hasMember(json, usageName, openBrace)) return true;
  return indexOfBytes(json, escape, 0) >= 0 && escapedLetters.some((letter) => indexOfBytes(json, letter, 0) >= 0);
}
