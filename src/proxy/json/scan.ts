import { isBlank } from "./bytes.ts";
import {
  beginValue,
  blankOrValue,
  closeContainer,
  commaOrEnd,
  endValue,
  type JsonScan,
  kindAt,
  name,
  nameEnd,
  nameMember,
  nameOrEnd,
  nothing,
  openContainer,
  restOfName,
  restOfNumber,
  restOfString,
  value,
  valueOrEnd,
} from "./scan-state.ts";
import {
  braceClose,
  braceOpen,
  bracketClose,
  bracketOpen,
  colon,
  comma,
  findQuote,
  isCompleteNumber,
  isInObject,
  literalEnd,
  minus,
  notJson,
  numberSign,
  numberStep,
  quote,
} from "./tokens.ts";

/** Reads up to `limit`, or a few bytes more. */
export function continueScan(scan: JsonScan, limit: number): void {
  let { at } = scan;
  while (at < limit && at !== notJson) {
    at = scan.nesting.depth < scan.watched.length ? readToken(scan, at, limit) : readUnwatched(scan, at, limit);
  }
  scan.at = at;
}

/**
 * The same inside a container that is not watched, up to its end: most of a long body lies in such. It reads the usual tokens
 * itself, because nothing is to be looked up or called for them.
 */
function readUnwatched(scan: JsonScan, from: number, limit: number): number {
  const { bytes, nesting, watched } = scan;
  const least = watched.length;
  let at = from;
  let { expected } = scan;
  while (at < limit) {
    const byte = bytes[at];
    if (byte === quote && expected <= nameOrEnd) {
      const isOfMember = expected >= name;
      at = findQuote(bytes, at + 1, limit);
      if (at === notJson || at >= limit) {
        scan.expected = isOfMember ? restOfName : restOfString;
        return at;
      }
      expected = isOfMember ? nameEnd : commaOrEnd;
      at += 1;
    } else if (byte === colon && expected === nameEnd) {
      expected = value;
      at += 1;
    } else if (byte === comma && expected === commaOrEnd) {
      expected = isInObject(nesting) ? name : value;
      at += 1;
    } else {
      scan.expected = expected;
      at = readToken(scan, at, limit);
      if (at === notJson || nesting.depth < least) return at;
      expected = scan.expected;
    }
  }
  scan.expected = expected;
  return at;
}

/** Whether what was read is a JSON text. To be called once all of it was. */
export function isComplete(scan: JsonScan): boolean {
  if (scan.expected === restOfNumber && scan.nesting.depth === 0 && isCompleteNumber(scan.numberState))
    endValue(scan, scan.at);
  return scan.at === scan.bytes.length && scan.expected === nothing;
}

function readToken(scan: JsonScan, at: number, limit: number): number {
  if (scan.expected >= restOfName) return readRest(scan, at, limit);
  const byte = scan.bytes[at] ?? 0;
  if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return at + 1;
  switch (scan.expected) {
    case valueOrEnd:
      return byte === bracketClose ? closeContainer(scan, at + 1) : readValue(scan, at, byte, limit);
    case value:
      return readValue(scan, at, byte, limit);
    case nameOrEnd:
      if (byte === braceClose) return closeContainer(scan, at + 1);
      return byte === quote ? beginName(scan, at, limit) : notJson;
    case name:
      return byte === quote ? beginName(scan, at, limit) : notJson;
    case nameEnd:
      if (byte !== colon) return notJson;
      scan.expected = value;
      return at + 1;
    case commaOrEnd: {
      const inObject = isInObject(scan.nesting);
      if (byte === (inObject ? braceClose : bracketClose)) return closeContainer(scan, at + 1);
      if (byte !== comma) return notJson;
      scan.expected = inObject ? name : value;
      return at + 1;
    }
    case blankOrValue:
      return isBlank(byte) ? at + 1 : readValue(scan, at, byte, limit);
    default:
      return scan.allowsBlanks && isBlank(byte) ? at + 1 : notJson;
  }
}

function readRest(scan: JsonScan, at: number, limit: number): number {
  switch (scan.expected) {
    case restOfName:
      return readName(scan, at, limit);
    case restOfString:
      return readString(scan, at, limit);
    default:
      return readNumber(scan, at, limit);
  }
}

function beginName(scan: JsonScan, at: number, limit: number): number {
  scan.nameStart = at;
  scan.expected = restOfName;
  return readName(scan, at + 1, limit);
}

function readName(scan: JsonScan, from: number, limit: number): number {
  const at = findQuote(scan.bytes, from, limit);
  if (at === notJson || at >= limit) return at;
  nameMember(scan, scan.nameStart + 1, at);
  scan.expected = nameEnd;
  return at + 1;
}

function readValue(scan: JsonScan, at: number, byte: number, limit: number): number {
  const slot = beginValue(scan, at);
  switch (byte) {
    case quote:
      scan.expected = restOfString;
      return readString(scan, at + 1, limit);
    case braceOpen:
    case bracketOpen:
      return openContainer(scan, at, slot);
    default:
      return kindAt(scan.bytes, at) === "number" ? beginNumber(scan, at, byte, limit) : readLiteral(scan, at);
  }
}

function readLiteral(scan: JsonScan, at: number): number {
  const end = literalEnd(scan.bytes, at);
  return end === notJson ? notJson : endValue(scan, end);
}

function beginNumber(scan: JsonScan, at: number, byte: number, limit: number): number {
  scan.numberState = byte === minus ? numberSign : numberStep(numberSign, byte);
  scan.expected = restOfNumber;
  return readNumber(scan, at + 1, limit);
}

function readNumber(scan: JsonScan, from: number, limit: number): number {
  const { bytes } = scan;
  let at = from;
  let state = scan.numberState;
  for (; at < limit; at += 1) {
    const next = numberStep(state, bytes[at] ?? 0);
    if (next === 0) return isCompleteNumber(state) ? endValue(scan, at) : notJson;
    state = next;
  }
  scan.numberState = state;
  return at;
}

function readString(scan: JsonScan, from: number, limit: number): number {
  const at = findQuote(scan.bytes, from, limit);
  return at === notJson || at >= limit ? at : endValue(scan, at + 1);
}
