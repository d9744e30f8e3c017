import { hasMember, indexOfBytes, isWhiteSpace, latin1, skipLeading } from "../json/bytes.ts";
import { createJsonSkipper, createStringEnd } from "../json/skipper.ts";
import { tokenCountNames, usageHolders } from "./token-counts.ts";

/** Finds the usage in a JSON text that arrives in pieces, cut anywhere, of any length, in constant memory. */
export interface JsonUsageParser {
  push(bytes: Uint8Array): void;
  /**
   * What `JSON.parse` would return for the text so far, without the members that `readUsage` ignores. A number that is
   * still unfinished is left out.
   */
  document(): unknown;
}

/** The members of an object that are followed; a count is a number at the end of the path. */
type Shape = ReadonlyMap<string, Shape | "count">;

const countNames = [...tokenCountNames.inputTokens, ...tokenCountNames.outputTokens];
const usageShape: Shape = new Map(countNames.map((name) => [name, "count"]));
const documentShape: Shape = new Map([
  ["usage", usageShape],
  ...usageHolders.map((holder) => [holder, new Map([["usage", usageShape]])] as const),
]);

/** The longest name that is followed, with every letter written as `\u0070`. */
const maxNameLength = 6 * Math.max(...countNames.map((name) => name.length));
/** No valid count is longer. */
const maxNumberLength = 64;

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

/** Skips everything that is not followed without decoding it, and keeps no more of a name than it can match. */
export function createJsonUsageParser(): JsonUsageParser {
  const document = createFollowedDocument();
  const skipper = createJsonSkipper();
  const nameEnd = createStringEnd();
  /** The letters of a name or number whose end has not arrived. */
  let partial = "";
  /** Reads the next token and sets the step after it. @returns where the next step starts */
  let step = readValue;

  function readValue(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    const byte = bytes[at];
    if (byte === undefined) return at;
    if (byte === colon) return at + 1;
    if (byte === openBrace && document.openObject()) {
      step = readMember;
      return at + 1;
    }
    document.setCount(null);
    if (skipper.open(byte)) return endValue(at + 1);
    partial = "";
    step = readNumber;
    return at;
  }

  function endValue(at: number): number {
    step = document.isOpen() ? readMember : skipRest;
    return at;
  }

  function readMember(bytes: Uint8Array, from: number): number {
    const at = skipLeading(bytes, from);
    if (bytes[at] === quote) {
      partial = "";
      step = readName;
    } else if (bytes[at] === closeBrace) {
      document.closeObject();
      endValue(at);
    }
    return at + 1;
  }

  function readName(bytes: Uint8Array, at: number): number {
    const end = nameEnd.find(bytes, at);
    if (partial.length <= maxNameLength) partial += latin1(bytes, at, end);
    if (end === bytes.length) return end;
    document.beginMember(unescapeName(partial));
    step = readValue;
    return end + 1;
  }

  /** Also reads true, false and null, which are not counts. */
  function readNumber(bytes: Uint8Array, from: number): number {
    const isCount = document.isAtCount();
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (isCount && partial.length <= maxNumberLength) partial += latin1(bytes, from, end);
    if (end === bytes.length) return end;
    if (isCount) document.setCount(parseNumber(partial));
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

/** The part of a document that is followed. Starts before the document itself, as if that were a member. */
interface FollowedDocument {
  /** The next value belongs to the member of this name. */
  beginMember(name: string): void;
  /** The next value is an object. @returns false if it is not followed */
  openObject(): boolean;
  closeObject(): void;
  /** Whether an object is open that is followed. */
  isOpen(): boolean;
  isAtCount(): boolean;
  /** The value of the current member, if that is followed. */
  setCount(count: unknown): void;
  value(): unknown;
}

interface FollowedObject {
  shape: Shape;
  members: Record<string, unknown>;
}

function createFollowedDocument(): FollowedDocument {
  const root: FollowedObject = { shape: new Map([["document", documentShape]]), members: {} };
  /** The objects around `parent`, the outermost first. Empty only while `parent` is `root`. */
  const outer: FollowedObject[] = [];
  let parent = root;
  let name = "document";

  return {
    beginMember(next) {
      name = next;
    },
    openObject() {
      const shape = parent.shape.get(name);
      if (shape === undefined || shape === "count") return false;
      const object: FollowedObject = { shape, members: {} };
      parent.members[name] = object.members;
      outer.push(parent);
      parent = object;
      return true;
    },
    closeObject() {
      parent = outer.pop() ?? root;
    },
    isOpen: () => parent !== root,
    isAtCount: () => parent.shape.get(name) === "count",
    setCount(count) {
      // If a name comes twice, the last one counts, whatever its value.
      if (parent.shape.has(name)) parent.members[name] = count;
    },
    value: () => root.members.document,
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
