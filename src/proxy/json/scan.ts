import { isBlank } from "./bytes.ts";
import {
  enter,
  isInObject,
  type Nesting,
  braceClose,
  braceOpen,
  bracketClose,
  bracketOpen,
  colon,
  comma,
  findQuote,
  isCompleteNumber,
  isName,
  literalEnd,
  minus,
  notJson,
  numberSign,
  numberStep,
  quote,
  startsWith,
} from "./tokens.ts";
import { createSlot, type JsonSlot } from "./slots.ts";

/**
 * Validates a JSON text and fills slots with the positions of the values that they watch. It needs one bit for each open
 * container and nothing else, and can be interrupted anywhere, so that neither its memory nor the time of one call
 * depends on the text.
 */
export interface JsonScan {
  readonly bytes: Uint8Array;
  /** Blanks that are not JSON's white space may stand around the text. */
  readonly allowsBlanks: boolean;
  /** The next byte to read; `notJson` once the text has turned out not to be JSON. */
  at: number;
  /** What the next byte has to be part of. */
  expected: Expected;
  /** The open containers, watched or not. */
  readonly nesting: Nesting;
  /** The document and the open containers that are watched, which are the outermost ones. */
  readonly watched: JsonSlot[];
  /** Where the last name started. */
  nameStart: number;
  /** How much of a number was read (see `numberStep`). */
  numberState: number;
}

/** The values of `expected`. Those from `restOfName` on continue a token that was interrupted. */
const value = 0;
const valueOrEnd = 1;
const name = 2;
const nameOrEnd = 3;
const nameEnd = 4;
const commaOrEnd = 5;
const nothing = 6;
const restOfName = 7;
const restOfString = 8;
const restOfNumber = 9;
const blankOrValue = -1;
type Expected = number;

const upperI = 0x49;

export function startScan(bytes: Uint8Array, root: JsonSlot, allowsBlanks = false): JsonScan {
  const document = createSlot({ element: root });
  document.current = root;
  return {
    bytes,
    allowsBlanks,
    // llama.cpp and Python skip a byte order mark.
    at: startsWith(bytes, 0, "\u00ef\u00bb\u00bf") ? 3 : 0,
    expected: allowsBlanks ? blankOrValue : value,
    nesting: { depth: 0, objects: new Uint32Array(4) },
    watched: [document],
    nameStart: 0,
    numberState: 0,
  };
}

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
      return byte === bracketClose ? closeContainer(scan, at) : readValue(scan, at, byte, limit);
    case value:
      return readValue(scan, at, byte, limit);
    case nameOrEnd:
      if (byte === braceClose) return closeContainer(scan, at);
      return byte === quote ? beginName(scan, at, limit) : notJson;
    case name:
      return byte === quote ? beginName(scan, at, limit) : notJson;
    case nameEnd:
      if (byte !== colon) return notJson;
      scan.expected = value;
      return at + 1;
    case commaOrEnd: {
      const inObject = isInObject(scan.nesting);
      if (byte === (inObject ? braceClose : bracketClose)) return closeContainer(scan, at);
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
  const parent = findWatched(scan);
  if (parent !== undefined) parent.current = findMember(parent, scan.bytes, scan.nameStart + 1, at);
  scan.expected = nameEnd;
  return at + 1;
}

function findMember(parent: JsonSlot, bytes: Uint8Array, start: number, end: number): JsonSlot | undefined {
  for (const member of parent.members) if (isName(bytes, start, end, member.name)) return member.slot;
  return parent.onOtherMember?.(bytes, start, end);
}

function readValue(scan: JsonScan, at: number, byte: number, limit: number): number {
  const slot = beginValue(scan, at);
  switch (byte) {
    case quote:
      if (slot !== undefined) slot.kind = "string";
      scan.expected = restOfString;
      return readString(scan, at + 1, limit);
    case braceOpen:
      return openContainer(scan, at, slot, "object");
    case bracketOpen:
      return openContainer(scan, at, slot, "array");
    default:
      return readScalar(scan, at, limit, slot);
  }
}

/** @returns the slot of the value, if it is watched */
function beginValue(scan: JsonScan, at: number): JsonSlot | undefined {
  const parent = findWatched(scan);
  if (parent === undefined) return undefined;
  parent.count += 1;
  const slot = parent.current;
  if (slot === undefined) return undefined;
  slot.start = at;
  slot.tail = at + 1;
  slot.count = 0;
  for (const member of slot.members) member.slot.kind = "absent";
  slot.onStart?.();
  return slot;
}

function openContainer(scan: JsonScan, at: number, slot: JsonSlot | undefined, kind: "object" | "array"): number {
  const isObject = kind === "object";
  enter(scan.nesting, isObject);
  if (slot !== undefined) {
    slot.kind = kind;
    slot.current = isObject ? undefined : slot.element;
    scan.watched.push(slot);
  }
  scan.expected = isObject ? nameOrEnd : valueOrEnd;
  return at + 1;
}

function closeContainer(scan: JsonScan, at: number): number {
  if (findWatched(scan) !== undefined) scan.watched.pop();
  scan.nesting.depth -= 1;
  return endValue(scan, at + 1);
}

function readScalar(scan: JsonScan, at: number, limit: number, slot: JsonSlot | undefined): number {
  const { bytes } = scan;
  const first = bytes[at] ?? 0;
  const isInfinity = first === minus && bytes[at + 1] === upperI;
  const state = first === minus ? numberSign : numberStep(numberSign, first);
  if (state === 0 || isInfinity) {
    if (slot !== undefined) slot.kind = "literal";
    const end = literalEnd(bytes, at);
    return end === notJson ? notJson : endValue(scan, end);
  }
  if (slot !== undefined) slot.kind = "number";
  scan.numberState = state;
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

/** @param end after the value */
function endValue(scan: JsonScan, end: number): number {
  scan.expected = scan.nesting.depth === 0 ? nothing : commaOrEnd;
  const parent = findWatched(scan);
  if (parent === undefined) return end;
  parent.tail = end;
  const slot = parent.current;
  if (slot !== undefined) {
    slot.end = end;
    slot.onValue?.(scan.bytes);
  }
  return end;
}

/** The innermost open container, if it is watched. */
function findWatched({ watched, nesting: { depth } }: JsonScan): JsonSlot | undefined {
  return depth === watched.length - 1 ? watched[depth] : undefined;
}
