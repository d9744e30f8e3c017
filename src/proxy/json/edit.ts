import { runAtOnce, type Steps } from "./steps.ts";
import type { JsonValue, Span } from "./slots.ts";

/** Collects edits to a JSON text and applies them at once; every byte outside them stays as it is. */
export interface JsonEditor {
  replace(value: Span, json: string): void;
  /** After the object's last member. The object must not have the name yet. */
  addMember(object: JsonValue, name: string, json: string): void;
  /** Before all other elements. An empty array can be given one element, at either end. */
  prependElement(array: JsonValue, json: string): void;
  /** After all other elements. */
  appendElement(array: JsonValue, json: string): void;
  /** Before a string's first character. */
  prependText(string: Span, text: string): void;
  /**
   * Yields after every step of at most about a millisecond.
   * @param bytes the text that the values are from
   * @returns undefined if nothing was edited
   */
  applyInSteps(bytes: Uint8Array): Steps<Uint8Array<ArrayBuffer> | undefined>;
  /** The same at once, for short texts. */
  apply(bytes: Uint8Array): Uint8Array<ArrayBuffer> | undefined;
}

interface Edit extends Span {
  json: string;
}

export function createJsonEditor(): JsonEditor {
  const edits: Edit[] = [];
  /** Where the objects start that were given a member: the next one needs a comma even if the text has `{}`. */
  const filled = new Set<number>();
  const insert = (at: number, json: string): void => void edits.push({ start: at, end: at, json });

  function* applyInSteps(bytes: Uint8Array): Steps<Uint8Array<ArrayBuffer> | undefined> {
    return edits.length === 0 ? undefined : yield* joinInSteps(listPieces(bytes, edits));
  }

  return {
    replace: ({ start, end }, json) => void edits.push({ start, end, json }),
    addMember(object, name, json) {
      const separator = isEmpty(object) && !filled.has(object.start) ? "" : ",";
      filled.add(object.start);
      insert(object.tail, `${separator}${JSON.stringify(name)}:${json}`);
    },
    prependElement: (array, json) => insert(array.start + 1, isEmpty(array) ? json : `${json},`),
    appendElement: (array, json) => insert(array.tail, isEmpty(array) ? json : `,${json}`),
    prependText: (string, prefix) => insert(string.start + 1, JSON.stringify(prefix).slice(1, -1)),
    applyInSteps,
    apply: (bytes) => runAtOnce(applyInSteps(bytes)),
  };
}

/** The tail of an empty container is right after its opening bracket. */
function isEmpty({ start, tail }: JsonValue): boolean {
  return tail === start + 1;
}

function listPieces(bytes: Uint8Array, edits: readonly Edit[]): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  let from = 0;
  // Sorting is stable: insertions at one position stay in the order of their calls.
  for (const { start, end, json } of edits.toSorted((a, b) => a.start - b.start)) {
    pieces.push(bytes.subarray(from, start), utf8.encode(json));
    from = end;
  }
  pieces.push(bytes.subarray(from));
  return pieces;
}

const utf8 = new TextEncoder();

/** Takes 0.2 ms, most of it for the memory. */
const stepBytes = 256 * 1024;

function* joinInSteps(pieces: readonly Uint8Array[]): Steps<Uint8Array<ArrayBuffer>> {
  const joined = new Uint8Array(pieces.reduce((length, piece) => length + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    let rest = piece;
    for (; rest.length > stepBytes; rest = rest.subarray(stepBytes)) {
      joined.set(rest.subarray(0, stepBytes), at);
      at += stepBytes;
      yield;
    }
    joined.set(rest, at);
    at += rest.length;
  }
  return joined;
}
