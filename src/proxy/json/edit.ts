import type { JsonValue, Span } from "./slots.ts";

type Bytes = Uint8Array<ArrayBuffer>;

/** Collects edits to a JSON text and applies them at once; every byte outside them stays as it is. */
export interface JsonEditor {
  replace(value: Span, json: string): void;
  /** Removes all that an array or a string holds: what is added to its head later stands alone. */
  clear(value: JsonValue): void;
  /** After the object's last member. The object must not have the name yet. */
  addMember(object: JsonValue, name: string, json: string): void;
  /** Before all other elements. An empty array can be given one element, at either end. */
  prependElement(array: JsonValue, json: string): void;
  /** After all other elements. */
  appendElement(array: JsonValue, json: string): void;
  /** Before a string's first character. @param separator follows the text unless nothing is left of the string */
  prependText(string: Span, text: string, separator?: string): void;
  /** What was collected so far. */
  readonly edits: readonly Span[];
  /**
   * The edited text in pieces: what was inserted, and views of the rest.
   * @param bytes the text that the values are from
   * @returns undefined if nothing was edited
   */
  apply(bytes: Bytes): Bytes[] | undefined;
}

interface Edit extends Span {
  json: string;
}

export function createJsonEditor(): JsonEditor {
  const edits: Edit[] = [];
  /** Where the objects start that were given a member: the next one needs a comma even if the text has `{}`. */
  const filled = new Set<number>();
  /** Where the values start that were cleared. */
  const cleared = new Set<number>();
  const holdsNothing = (value: JsonValue): boolean => isEmpty(value) || cleared.has(value.start);
  const insert = (at: number, json: string): void => void edits.push({ start: at, end: at, json });

  return {
    replace: ({ start, end }, json) => void edits.push({ start, end, json }),
    clear({ start, end }) {
      cleared.add(start);
      edits.push({ start: start + 1, end: end - 1, json: "" });
    },
    addMember(object, name, json) {
      const separator = isEmpty(object) && !filled.has(object.start) ? "" : ",";
      filled.add(object.start);
      insert(object.tail, `${separator}${JSON.stringify(name)}:${json}`);
    },
    prependElement: (array, json) => insert(array.start + 1, holdsNothing(array) ? json : `${json},`),
    appendElement: (array, json) => insert(array.tail, isEmpty(array) ? json : `,${json}`),
    prependText({ start, end }, text, separator = "") {
      const isLeftEmpty = end - start === 2 || cleared.has(start);
      insert(start + 1, JSON.stringify(isLeftEmpty ? text : text + separator).slice(1, -1));
    },
    edits,
    apply: (bytes) => (edits.length === 0 ? undefined : listPieces(bytes, edits)),
  };
}

/** The tail of an empty container is right after its opening bracket. */
function isEmpty({ start, tail }: JsonValue): boolean {
  return tail === start + 1;
}

function listPieces(bytes: Bytes, edits: readonly Edit[]): Bytes[] {
  const pieces: Bytes[] = [];
  let from = 0;
  // Sorting is stable: insertions at one position stay in the order of their calls, in front of what is replaced there.
  for (const { start, end, json } of edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    pieces.push(bytes.subarray(from, start), utf8.encode(json));
    from = end;
  }
  pieces.push(bytes.subarray(from));
  return pieces;
}

const utf8 = new TextEncoder();
