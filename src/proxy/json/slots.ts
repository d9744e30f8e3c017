import { isName } from "./tokens.ts";

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

function listMembers(members: Readonly<Record<string, JsonSlot>>): SlotMember[] {
  const list: SlotMember[] = [];
  // A tenth of the time of Object.entries, which is half of the time of a short body.
  for (const name in members) {
    const slot = members[name];
    if (slot !== undefined) list.push({ name, slot });
  }
  return list;
}

const noMembers: readonly SlotMember[] = [];

export function createSlot({ members, element, onOtherMember, onStart, onValue }: SlotOptions = {}): JsonSlot {
  return {
    kind: "absent",
    start: 0,
    end: 0,
    tail: 0,
    count: 0,
    members: members === undefined ? noMembers : listMembers(members),
    element,
    onOtherMember,
    onStart,
    onValue,
    current: undefined,
  };
}

/** @returns the slot of the member of this name, as it stands in the text */
export function findMember(object: JsonSlot, bytes: Uint8Array, start: number, end: number): JsonSlot | undefined {
  for (const member of object.members) if (isName(bytes, start, end, member.name)) return member.slot;
  return object.onOtherMember?.(bytes, start, end);
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
