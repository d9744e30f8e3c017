import { createSlot, findMember, type JsonKind, type JsonSlot } from "./slots.ts";
import { braceOpen, bracketOpen, enter, isDigit, minus, type Nesting, quote, startsWith } from "./tokens.ts";

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
  /** What is done to the slots while it is read, to be done again for the same block; undefined unless it is to be known. */
  notes: Notes | undefined;
}

/** What the next byte has to be part of. Those from `restOfName` on continue a token that was interrupted. */
export type Expected = number;
export const value = 0;
export const valueOrEnd = 1;
export const name = 2;
export const nameOrEnd = 3;
export const nameEnd = 4;
export const commaOrEnd = 5;
export const nothing = 6;
export const restOfName = 7;
export const restOfString = 8;
export const restOfNumber = 9;
export const blankOrValue = -1;

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
  const { bytes, nesting, watched } = scan;
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
        if (slot !== undefined && isContainer(bytes[at])) openContainer(scan, at, slot);
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

const isContainer = (byte: number | undefined): boolean => byte === braceOpen || byte === bracketOpen;

/** @param start of the name's text, and `end` after it */
export function nameMember(scan: JsonScan, start: number, end: number): void {
  const object = findWatched(scan);
  if (object === undefined) return;
  note(scan, memberNamed, start);
  note(scan, memberNamed, end);
  object.current = findMember(object, scan.bytes, start, end);
}

/** @returns the slot of the value, if it is watched */
export function beginValue(scan: JsonScan, at: number): JsonSlot | undefined {
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
export function openContainer(scan: JsonScan, at: number, slot: JsonSlot | undefined): number {
  const isObject = scan.bytes[at] === braceOpen;
  enter(scan.nesting, isObject);
  if (slot !== undefined) {
    slot.current = isObject ? undefined : slot.element;
    scan.watched.push(slot);
  }
  scan.expected = isObject ? nameOrEnd : valueOrEnd;
  return at + 1;
}

/** @param end after its bracket */
export function closeContainer(scan: JsonScan, end: number): number {
  const isWatched = findWatched(scan) !== undefined;
  if (isWatched) scan.watched.pop();
  scan.nesting.depth -= 1;
  return endValue(scan, end, isWatched ? containerEnded : valueEnded);
}

/** @param end after the value */
export function endValue(scan: JsonScan, end: number, step = valueEnded): number {
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

/** Of the value that begins here, if it is one. */
export function kindAt(bytes: Uint8Array, at: number): JsonKind {
  const first = bytes[at] ?? 0;
  switch (first) {
    case quote:
      return "string";
    case braceOpen:
      return "object";
    case bracketOpen:
      return "array";
    case minus:
      return bytes[at + 1] === upperI ? "literal" : "number";
    default:
      return isDigit(first) ? "number" : "literal";
  }
}

/** Of `-Infinity`. */
const upperI = 0x49;
