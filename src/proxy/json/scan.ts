import { isBlank } from "./bytes.ts";
import {
  braceClose,
  braceOpen,
  bracketClose,
  bracketOpen,
  colon,
  comma,
  findQuote,
  completeNumber,
  isName,
  literals,
  minus,
  notJson,
  numberStart,
  numberSteps,
  quote,
  createSlot,
  type JsonKind,
  type JsonSlot,
  startsWith,
} from "./slots.ts";

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
  expected: number;
  /** The open containers, watched or not. */
  readonly nesting: Nesting;
  /** The document and the open containers that are watched, which are the outermost ones. */
  readonly watched: JsonSlot[];
  /** Where the last name started. */
  nameStart: number;
  /** How much of a number was read (see `numberSteps`). */
  numberState: number;
  /** What is done to the slots while it is read, to be done again for the same block; undefined unless it is to be known. */
  notes: Notes | undefined;
}

/** The open containers of a text, in one bit for each: a hostile text may be nothing but brackets. */
interface Nesting {
  depth: number;
  /** The bit of a container, at its depth, is set if it is an object. */
  objects: Uint32Array;
}

/** What the next byte has to be part of. Those from `restOfName` on continue a token that was interrupted. */
const value = 0;
const valueOrEnd = 1;
export const name = 2;
const nameOrEnd = 3;
const nameEnd = 4;
const commaOrEnd = 5;
const nothing = 6;
const restOfName = 7;
const restOfString = 8;
const restOfNumber = 9;
const blankOrValue = -1;

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
    notes: undefined,
  };
}

/** The steps of a block, in memory that serves many, one after the other. */
export interface Notes {
  /** Where the block starts. */
  from: number;
  readonly steps: Int32Array;
  /** How many there are; over `maxSteps` if there were more. */
  count: number;
}

/** A block with more is not kept. Messages of a dozen words each are half as many to a block. */
export const maxSteps = 1024;

export const createNotes = (): Notes => ({ from: 0, steps: new Int32Array(maxSteps + 1), count: 0 });

/** A step is where it is done, from the start of the block, and in the two lowest bits what. */
const memberNamed = 0;
const valueBegun = 1;
const valueEnded = 2;
const containerEnded = 3;

function note({ notes }: JsonScan, step: number, at: number): void {
  if (notes === undefined || notes.count > maxSteps) return;
  notes.steps[notes.count] = ((at - notes.from) << 2) | step;
  notes.count += 1;
}

/** Does to the slots what was done when the same block was read in the same state. @param from where it starts now */
export function repeatSteps(scan: JsonScan, from: number, steps: Int32Array): void {
  const { nesting, watched } = scan;
  // The block may begin in a container that is not watched; the first step is its end.
  nesting.depth = watched.length - 1;
  for (let index = 0; index < steps.length; index += 1) {
    const step = steps[index] ?? 0;
    const at = from + (step >> 2);
    switch (step & 3) {
      case memberNamed:
        index += 1;
        nameMember(scan, at, from + ((steps[index] ?? 0) >> 2));
        break;
      case valueBegun: {
        const slot = beginValue(scan, at);
        if (slot?.kind === "object" || slot?.kind === "array") openContainer(scan, at, slot);
        break;
      }
      case valueEnded:
        endValue(scan, at);
        break;
      default:
        closeContainer(scan, at);
    }
  }
}

/** @param start of the name's text, and `end` after it */
function nameMember(scan: JsonScan, start: number, end: number): void {
  const object = findWatched(scan);
  if (object === undefined) return;
  note(scan, memberNamed, start);
  note(scan, memberNamed, end);
  for (const member of object.members) {
    if (!isName(scan.bytes, start, end, member.name)) continue;
    object.current = member.slot;
    return;
  }
  object.current = object.onOtherMember?.(scan.bytes, start, end);
}

/** @returns the slot of the value, if it is watched */
function beginValue(scan: JsonScan, at: number): JsonSlot | undefined {
  const parent = findWatched(scan);
  if (parent === undefined) return undefined;
  note(scan, valueBegun, at);
  parent.count += 1;
  const slot = parent.current;
  if (slot === undefined) return undefined;
  slot.kind = kindAt(scan.bytes, at);
  slot.start = at;
  slot.tail = at + 1;
  slot.count = 0;
  for (const member of slot.members) member.slot.kind = "absent";
  slot.onStart?.();
  return slot;
}

/** @param slot its own, if it is watched */
function openContainer(scan: JsonScan, at: number, slot: JsonSlot | undefined): number {
  const isObject = scan.bytes[at] === braceOpen;
  const { nesting } = scan;
  nesting.depth += 1;
  const word = nesting.depth >>> 5;
  if (word === nesting.objects.length) {
    const larger = new Uint32Array(word * 2);
    larger.set(nesting.objects);
    nesting.objects = larger;
  }
  const bit = 1 << (nesting.depth & 31);
  const others = (nesting.objects[word] ?? 0) & ~bit;
  nesting.objects[word] = isObject ? others | bit : others;
  if (slot !== undefined) {
    slot.current = isObject ? undefined : slot.element;
    scan.watched.push(slot);
  }
  scan.expected = isObject ? nameOrEnd : valueOrEnd;
  return at + 1;
}

/** @param end after its bracket */
function closeContainer(scan: JsonScan, end: number): number {
  const isWatched = findWatched(scan) !== undefined;
  if (isWatched) scan.watched.pop();
  scan.nesting.depth -= 1;
  return endValue(scan, end, isWatched ? containerEnded : valueEnded);
}

/** @param end after the value */
function endValue(scan: JsonScan, end: number, step = valueEnded): number {
  scan.expected = scan.nesting.depth === 0 ? nothing : commaOrEnd;
  const parent = findWatched(scan);
  if (parent === undefined) return end;
  note(scan, step, end);
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

const kinds = Array.from<unknown, JsonKind>({ length: 256 }, () => "literal");
for (const digit of "-0123456789") kinds[digit.charCodeAt(0)] = "number";
kinds[quote] = "string";
kinds[braceOpen] = "object";
kinds[bracketOpen] = "array";

/** Of the value that begins here, if it is one. */
function kindAt(bytes: Uint8Array, at: number): JsonKind {
  const first = bytes[at] ?? 0;
  return first === minus && bytes[at + 1] === upperI ? "literal" : (kinds[first] ?? "literal");
}

/** Of `-Infinity`. */
const upperI = 0x49;

/** Whether the innermost container is an object. */
function isInObject({ objects, depth }: Nesting): boolean {
  return (((objects[depth >>> 5] ?? 0) >>> (depth & 31)) & 1) === 1;
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
  const isAtNumber = scan.expected === restOfNumber && scan.nesting.depth === 0;
  if (isAtNumber && scan.numberState >= completeNumber) endValue(scan, scan.at);
  return scan.at === scan.bytes.length && scan.expected === nothing;
}

function readToken(scan: JsonScan, at: number, limit: number): number {
  const { expected } = scan;
  if (expected === restOfName) return readName(scan, at, limit);
  if (expected > restOfName)
    return expected === restOfString ? readString(scan, at, limit) : readNumber(scan, at, limit);
  const byte = scan.bytes[at] ?? 0;
  if (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09) return at + 1;
  switch (expected) {
    case valueOrEnd:
    case value:
      if (byte === bracketClose && expected === valueOrEnd) return closeContainer(scan, at + 1);
      return readValue(scan, at, byte, limit);
    case nameOrEnd:
    case name:
      if (byte === braceClose && expected === nameOrEnd) return closeContainer(scan, at + 1);
      if (byte !== quote) return notJson;
      scan.nameStart = at;
      scan.expected = restOfName;
      return readName(scan, at + 1, limit);
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

function readName(scan: JsonScan, from: number, limit: number): number {
  const at = findQuote(scan.bytes, from, limit);
  if (at === notJson || at >= limit) return at;
  nameMember(scan, scan.nameStart + 1, at);
  scan.expected = nameEnd;
  return at + 1;
}

function readValue(scan: JsonScan, at: number, byte: number, limit: number): number {
  const slot = beginValue(scan, at);
  if (byte === quote) {
    scan.expected = restOfString;
    return readString(scan, at + 1, limit);
  }
  if (byte === braceOpen || byte === bracketOpen) return openContainer(scan, at, slot);
  if (kindAt(scan.bytes, at) === "number") {
    scan.numberState = numberStart;
    scan.expected = restOfNumber;
    return readNumber(scan, at, limit);
  }
  for (const literal of literals) if (startsWith(scan.bytes, at, literal)) return endValue(scan, at + literal.length);
  return notJson;
}

function readNumber(scan: JsonScan, from: number, limit: number): number {
  const { bytes } = scan;
  let at = from;
  let state = scan.numberState;
  for (; at < limit; at += 1) {
    const next = numberSteps[state * 256 + (bytes[at] ?? 0)] ?? 0;
    if (next === 0) return state >= completeNumber ? endValue(scan, at) : notJson;
    state = next;
  }
  scan.numberState = state;
  return at;
}

function readString(scan: JsonScan, from: number, limit: number): number {
  const at = findQuote(scan.bytes, from, limit);
  return at === notJson || at >= limit ? at : endValue(scan, at + 1);
}
