import { parseJson } from "../../domain/json.ts";
import { hasMember, indexOfBytes, isWhiteSpace, latin1, skipLeading, utf8 } from "../json/bytes.ts";
import { createJsonSkipper, createStringEnd } from "../json/skipper.ts";
import { createFollowedDocument, type FollowedDocument, maxNameLength as longestName } from "./followed-document.ts";

/** Finds the usage in a JSON text that arrives in pieces, cut anywhere, of any length, in constant memory. */
export type JsonUsageParser = ReturnType<typeof createJsonUsageParser>;

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

type Step = (bytes: Uint8Array, from: number) => number;

/** Skips everything that is not followed without decoding it, and keeps no more of a name than it can match. */
export function createJsonUsageParser() {
  const document = createFollowedDocument();
  const skipper = createJsonSkipper();
  const name = createString(maxNameLength);
  const scalar = createScalarReader(document, endValue);
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
    if (byte === openBracket && document.openArray()) {
      step = readElement;
      return at + 1;
    }
    document.setValue(null);
    if (byte === quote && document.isAtId()) {
      step = scalar.beginId();
      return at + 1;
    }
    if (skipper.open(byte)) return endValue(at + 1);
    step = scalar.beginNumber();
    return at;
  }

  function endValue(at: number): number {
    const inside = document.isInArray() ? readElement : readMember;
    step = document.isOpen() ? inside : skipRest;
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
      name.begin();
      step = readName;
    } else if (bytes[at] === closeBrace) {
      document.close();
      endValue(at);
    }
    return at + 1;
  }

  function readName(bytes: Uint8Array, at: number): number {
    const end = name.read(bytes, at);
    if (end === bytes.length) return end;
    document.beginMember(unescapeName(name.text()));
    step = readValue;
    return end + 1;
  }

  return {
    push(bytes: Uint8Array): void {
      let at = 0;
      while (at < bytes.length) at = skipper.isOpen() ? skipper.skip(bytes, at) : step(bytes, at);
    },
    /**
     * What `JSON.parse` would return for the text so far, without the members that `readUsage` ignores. A number that is
     * still unfinished is left out.
     */
    document: document.value,
  };
}

/** Reads the values that are kept, for the parser's steps. @param endValue sets the step after it */
function createScalarReader(
  document: FollowedDocument,
  endValue: (at: number) => number,
): Record<"beginId" | "beginNumber", () => Step> {
  const id = createString(maxIdLength);
  const number = createText(maxNumberLength);

  function readId(bytes: Uint8Array, at: number): number {
    const end = id.read(bytes, at);
    if (end === bytes.length) return end;
    if (!id.isTooLong()) document.setValue(parseJson(`"${id.text()}"`));
    return endValue(end + 1);
  }

  /** Also reads true, false and null, which are not counts. */
  function readNumber(bytes: Uint8Array, from: number): number {
    const isCount = document.isAtCount();
    let end = from;
    while (end < bytes.length && !endsNumber(bytes[end])) end++;
    if (isCount) number.add(bytes, from, end);
    if (end === bytes.length) return end;
    if (isCount) document.setValue(number.isTooLong() ? undefined : parseJson(number.text()));
    return endValue(end);
  }

  return {
    beginId() {
      id.begin();
      return readId;
    },
    beginNumber() {
      number.begin();
      return readNumber;
    },
  };
}

/** The letters of a token whose end has not arrived. */
function createText(maxLength: number) {
  let text = "";
  return {
    begin(): void {
      text = "";
    },
    /** Keeps one character more than `maxLength`, which shows that it is too long. */
    add(bytes: Uint8Array, from: number, to: number): void {
      const missing = maxLength + 1 - text.length;
      if (missing > 0) text += latin1(bytes, from, Math.min(to, from + missing));
    },
    text: (): string => text,
    isTooLong: (): boolean => text.length > maxLength,
  };
}

/** A string after its first quote. `read` returns where its last one is, or the end of the bytes. */
function createString(maxLength: number) {
  const text = createText(maxLength);
  const stringEnd = createStringEnd();
  return {
    ...text,
    read(bytes: Uint8Array, at: number): number {
      const end = stringEnd.find(bytes, at);
      text.add(bytes, at, end);
      return end;
    },
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
  const parsed = parseJson(`"${raw}"`);
  return typeof parsed === "string" ? parsed : "";
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
