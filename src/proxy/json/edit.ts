import { isWhiteSpace } from "./bytes.ts";
import { braceOpen, comma, type JsonValue, quote, type Span } from "./slots.ts";

interface Edit extends Span {
  json: string;
}

/** Collects edits to a JSON text and applies them at once; every byte outside them stays as it is. */
export class JsonEditor {
  /** What was collected so far. */
  readonly edits: Edit[] = [];
  /** Where the objects start that were given a member: the next one needs a comma even if the text has `{}`. */
  readonly #filled = new Set<number>();
  /** Where the values start that were cleared, and the objects that lost all of their members. */
  readonly #cleared = new Set<number>();

  replace({ start, end }: Span, json: string): void {
    this.edits.push({ start, end, json });
  }

  /** Removes all that an array or a string holds: what is added to its head later stands alone. */
  clear({ start, end }: JsonValue): void {
    this.#cleared.add(start);
    this.edits.push({ start: start + 1, end: end - 1, json: "" });
  }

  /** After the object's last member. The object must not have the name yet. */
  addMember(object: JsonValue, name: string, json: string): void {
    const isBare = object.count === 0 || this.#cleared.has(object.start);
    const separator = isBare && !this.#filled.has(object.start) ? "" : ",";
    this.#filled.add(object.start);
    const { tail } = object;
    this.edits.push({ start: tail, end: tail, json: `${separator}${JSON.stringify(name)}:${json}` });
  }

  /** With names and commas; names must have no quotes. What is added to the same objects has to come later. */
  removeMembers(bytes: Uint8Array, values: readonly Span[]): void {
    let [removedTo, opened] = [0, 0];
    for (const { start, end } of values.toSorted((a, b) => a.start - b.start)) {
      const name = bytes.lastIndexOf(quote, bytes.lastIndexOf(quote, start - 1) - 1);
      let [before, after] = [name - 1, end];
      while (isWhiteSpace(bytes[before])) before -= 1;
      while (isWhiteSpace(bytes[after])) after += 1;
      const isLast = bytes[after] !== comma;
      const takesComma = bytes[before] === comma && before >= removedTo;
      if (bytes[before] === braceOpen) opened = before;
      if (!takesComma && isLast) this.#cleared.add(opened);
      removedTo = takesComma || isLast ? end : after + 1;
      this.edits.push({ start: takesComma ? before : name, end: removedTo, json: "" });
    }
  }

  /** Before all other elements. An empty array can be given one element, at either end. */
  prependElement(array: JsonValue, json: string): void {
    const isBare = array.count === 0 || this.#cleared.has(array.start);
    const start = array.start + 1;
    this.edits.push({ start, end: start, json: isBare ? json : `${json},` });
  }

  /** After all other elements. */
  appendElement({ tail, count }: JsonValue, json: string): void {
    this.edits.push({ start: tail, end: tail, json: count === 0 ? json : `,${json}` });
  }

  /** Before a string's first character. @param separator follows the text unless nothing is left of the string */
  prependText({ start, end }: Span, text: string, separator = ""): void {
    const isLeftEmpty = end - start === 2 || this.#cleared.has(start);
    const json = JSON.stringify(isLeftEmpty ? text : text + separator).slice(1, -1);
    this.edits.push({ start: start + 1, end: start + 1, json });
  }

  /**
   * The edited text in pieces: what was inserted, and views of the rest.
   * @param bytes the text that the values are from
   * @returns undefined if nothing was edited
   */
  apply<B extends ArrayBufferLike>(bytes: Uint8Array<B>): Uint8Array<B | ArrayBuffer>[] | undefined {
    if (this.edits.length === 0) return undefined;
    const pieces: Uint8Array<B | ArrayBuffer>[] = [];
    let from = 0;
    // Sorting is stable: insertions at one position stay in the order of their calls, in front of what is replaced there.
    for (const { start, end, json } of this.edits.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
      pieces.push(bytes.subarray(from, start), utf8.encode(json));
      from = end;
    }
    pieces.push(bytes.subarray(from));
    return pieces;
  }
}

const utf8 = new TextEncoder();
