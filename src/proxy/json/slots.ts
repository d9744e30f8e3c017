/**
 * Where the tokens of a JSON text end. Strict (RFC 8259), except for `NaN`, `Infinity` and `-Infinity`: Python's json
 * module, and so vLLM and SGLang, accepts them, and a body that has one must not escape its cap.
 */

/** Returned instead of a position: the text is not JSON. */
export const notJson = -1;

export const quote = 0x22;
export const comma = 0x2c;
export const minus = 0x2d;
export const colon = 0x3a;
export const bracketOpen = 0x5b;
export const backslash = 0x5c;
export const bracketClose = 0x5d;
export const braceOpen = 0x7b;
export const braceClose = 0x7d;
const lowerU = 0x75;

/** What ends the plain part of a string: the quote, an escape, or a control character, which is not allowed. */
const endsPlainText = new Uint8Array(256).fill(1, 0, 0x20);
endsPlainText[quote] = 1;
endsPlainText[backslash] = 1;

/**
 * @param from inside a string, not inside an escape
 * @returns the position of the closing quote; if the string continues at `limit`, a position to continue from
 */
export function findQuote(bytes: Uint8Array, from: number, limit: number): number {
  let at = from;
  for (;;) {
    while (at < limit && endsPlainText[bytes[at] ?? 0] === 0) at += 1;
    if (at >= limit || bytes[at] === quote) return at;
    if (bytes[at] !== backslash) return notJson;
    at = escapeEnd(bytes, at);
    if (at === notJson) return notJson;
  }
}

/** By byte; -1 for those that are none. */
const hexDigits = new Int8Array(256).fill(-1);
for (const digit of "0123456789abcdefABCDEF") hexDigits[digit.charCodeAt(0)] = Number.parseInt(digit, 16);

const escapeLetters = new Uint8Array(256);
for (const letter of '"\\/bfnrt') escapeLetters[letter.charCodeAt(0)] = 1;

function escapeEnd(bytes: Uint8Array, at: number): number {
  const letter = bytes[at + 1] ?? 0;
  if (letter !== lowerU) return escapeLetters[letter] === 1 ? at + 2 : notJson;
  for (let digit = at + 2; digit < at + 6; digit += 1) if ((hexDigits[bytes[digit] ?? 0] ?? -1) < 0) return notJson;
  return at + 6;
}

/** Whether a string holds `name`, with escapes or without. @param name ASCII without characters that JSON escapes */
export function isName(bytes: Uint8Array, start: number, end: number, name: string): boolean {
  let at = start;
  for (let index = 0; index < name.length; index += 1) {
    const code = name.charCodeAt(index);
    if (bytes[at] === code) at += 1;
    else if (bytes[at] === backslash && bytes[at + 1] === lowerU && hexNumber(bytes, at + 2) === code) at += 6;
    else return false;
  }
  return at === end;
}

function hexNumber(bytes: Uint8Array, at: number): number {
  let number = 0;
  for (let digit = at; digit < at + 4; digit += 1) number = number * 16 + (hexDigits[bytes[digit] ?? 0] ?? -1);
  return number;
}

/** What was read of a number, which is complete from `zero` on; 0 means that the byte is not part of one. */
const [sign, point, exponent, exponentSign, zero, integer, fraction, exponentDigits] = [2, 3, 4, 5, 6, 7, 8, 9];

export const numberStart = 1;
export const completeNumber = zero;
const digits = "0123456789";
/** By 256 times what was read, and the next byte. */
export const numberSteps = new Uint8Array(10 * 256);
const steps: readonly [from: readonly number[], bytes: string, to: number][] = [
  [[numberStart], "-", sign],
  [[numberStart, sign], "0", zero],
  [[numberStart, sign], "123456789", integer],
  [[integer], digits, integer],
  [[zero, integer], ".", point],
  [[point, fraction], digits, fraction],
  [[zero, integer, fraction], "eE", exponent],
  [[exponent], "+-", exponentSign],
  [[exponent, exponentSign, exponentDigits], digits, exponentDigits],
];
for (const [from, bytes, to] of steps) {
  for (const state of from) for (const byte of bytes) numberSteps[state * 256 + byte.charCodeAt(0)] = to;
}

export const literals = ["true", "false", "null", "NaN", "Infinity", "-Infinity"];

export function startsWith(bytes: Uint8Array, at: number, ascii: string): boolean {
  for (let index = 0; index < ascii.length; index += 1) {
    if (bytes[at + index] !== ascii.charCodeAt(index)) return false;
  }
  return true;
}

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** `literal`: true, false, null, NaN, Infinity. */
export type JsonKind = "absent" | "string" | "number" | "literal" | "object" | "array";

/** A value of a JSON text, by its position in the bytes. */
export interface JsonValue extends Span {
  readonly kind: JsonKind;
  /** After the last member or element; after the opening bracket if there is none. Objects and arrays only. */
  readonly tail: number;
  /** Elements of an array, or members of an object. */
  readonly count: number;
}

/**
 * A place in a document that is watched, such as "the content of a message". It holds the latest value at that place, so
 * that a document of any size is read in constant memory. Callers that need more than the latest copy it in `onValue`.
 */
export interface JsonSlot {
  kind: JsonKind;
  start: number;
  end: number;
  tail: number;
  count: number;
  /** Watched if the value is an object. */
  readonly members: readonly SlotMember[];
  /** Watched if the value is an array: every element in turn. */
  readonly element: JsonSlot | undefined;
  /** Called with the text and the ends of the name of each other member. @returns what watches it all the same */
  readonly onOtherMember: ((bytes: Uint8Array, start: number, end: number) => JsonSlot | undefined) | undefined;
  /** Called before a value at this place is read: what was copied from the value before it no longer counts. */
  readonly onStart: (() => void) | undefined;
  /** Called with the text after a value at this place was read, with its members still in their slots. */
  readonly onValue: ((bytes: Uint8Array) => void) | undefined;
  /** The scanner's: the slot of the member or element that is being read. */
  current: JsonSlot | undefined;
}

interface SlotMember {
  /** ASCII. */
  readonly name: string;
  readonly slot: JsonSlot;
}

export interface SlotOptions {
  members?: Readonly<Record<string, JsonSlot>>;
  element?: JsonSlot;
  onOtherMember?: (bytes: Uint8Array, start: number, end: number) => JsonSlot | undefined;
  onStart?: () => void;
  onValue?: (bytes: Uint8Array) => void;
}

const noMembers: SlotMember[] = [];

export function createSlot({ members, element, onOtherMember, onStart, onValue }: SlotOptions = {}): JsonSlot {
  const list = members === undefined ? noMembers : [];
  // A tenth of the time of Object.entries, which is half of the time of a short body.
  for (const name in members) {
    const slot = members[name];
    if (slot !== undefined) list.push({ name, slot });
  }
  return {
    kind: "absent",
    start: 0,
    end: 0,
    tail: 0,
    count: 0,
    members: list,
    element,
    onOtherMember,
    onStart,
    onValue,
    current: undefined,
  };
}

/** Keeps every value at a place, for a member that comes several times. */
export interface RepeatedSlot {
  readonly slot: JsonSlot;
  readonly values: readonly JsonValue[];
  /** There were more values than are kept. */
  readonly isOverflowing: boolean;
  /** Forgets the values before the next text is read. */
  clear(): void;
}

/** @param options of the value, of which the latest is watched */
export function createRepeatedSlot(maxValues: number, options: Omit<SlotOptions, "onValue"> = {}): RepeatedSlot {
  const values: JsonValue[] = [];
  const slot = createSlot({
    ...options,
    onValue() {
      const { kind, start, end, tail, count } = slot;
      // A copy, which stays when the slot goes on to the next value.
      if (values.length < maxValues) values.push({ kind, start, end, tail, count });
      else repeated.isOverflowing = true;
    },
  });
  const repeated = {
    slot,
    values,
    isOverflowing: false,
    clear() {
      values.length = 0;
      repeated.isOverflowing = false;
    },
  };
  return repeated;
}

/** Copies a value without an allocation: a text may have millions. */
export function copyValue(from: JsonSlot, to: JsonSlot): void {
  to.kind = from.kind;
  to.start = from.start;
  to.end = from.end;
  to.tail = from.tail;
  to.count = from.count;
}
