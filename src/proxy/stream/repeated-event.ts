import { indexOfBytes } from "../json/bytes.ts";
import { backslash, colon, findQuote, isDigit, lowerU, notJson } from "../json/tokens.ts";

/** How much output some events have. */
export interface OutputLength {
  /** Events with output. */
  events: number;
  /** UTF-16 units, as in a string's length. */
  characters: number;
}

/** Longer events are rare, and their memory is kept as long as the stream. */
const maxLength = 1024;
/** A stream whose every event has a number of its own repeats none. */
const maxLearned = 8;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const letterE = 0x65;
const dataField = Buffer.from("data: ");
/** The Responses API numbers its events. */
const numberName = Buffer.from('"sequence_number":');

/** What an event has in turn. Newer vLLM sends a text under two names. */
type Part = Uint8Array | "text" | "number";

/**
 * Knows the events of a stream that differ from one that was parsed only in the text of their output, as nearly all do. A
 * look at one takes a third of the time that parsing it takes.
 */
export class RepeatedEvent {
  #parts: readonly Part[] | undefined;
  /** How many were learned since one was repeated. */
  #learned = 0;

  /**
   * @param json of an event that changes nothing but how much output there is
   * @param text all of its output
   */
  learn(json: Uint8Array, text: string): void {
    if (this.#learned === maxLearned || json.length > maxLength) return;
    const found = partsOf(json, Buffer.from(JSON.stringify(text)));
    if (found === undefined) return;
    this.#parts = found;
    this.#learned += 1;
  }

  /** @param events whole ones @returns undefined unless each is such an event */
  lengthOf(events: Uint8Array): OutputLength | undefined {
    const parts = this.#parts;
    if (parts === undefined) return undefined;
    const length: OutputLength = { events: 0, characters: 0 };
    let at: number | undefined = 0;
    while (at < events.length) {
      // Its name says nothing that its JSON text does not say.
      const start: number = events[at] === letterE ? events.indexOf(lineFeed, at) + 1 : at;
      at = endOfEvent(events, addEvent(length, parts, events, start));
      if (at === undefined) return undefined;
    }
    this.#learned = 0;
    return length;
  }
}

/** @param value the text as it is written, with its quotes @returns undefined if it is not sure where that is */
function partsOf(json: Uint8Array, value: Uint8Array): Part[] | undefined {
  const parts: Part[] = [];
  let from = 0;
  let piece: Uint8Array = dataField;
  for (let at = indexOfBytes(json, value, 0); at >= 0; at = indexOfBytes(json, value, from)) {
    // A name, or what is between a name and its value, such as `":"`.
    const before = json[at - 1] === space ? json[at - 2] : json[at - 1];
    if (before !== colon) return undefined;
    addPieces(parts, Buffer.concat([piece, json.subarray(from, at + 1)]));
    parts.push("text");
    piece = value.subarray(-1);
    from = at + value.length;
  }
  addPieces(parts, Buffer.concat([piece, json.subarray(from)]));
  // With an escape in another place, the text may be written in another way, and what was found is something else.
  const hasEscape = parts.some((part) => typeof part !== "string" && part.includes(backslash));
  return from === 0 || hasEscape ? undefined : parts;
}

function addPieces(parts: Part[], bytes: Uint8Array): void {
  const at = indexOfBytes(bytes, numberName, 0);
  const start = at < 0 ? bytes.length : at + numberName.length;
  const end = digitsEnd(bytes, start);
  if (end === start) parts.push(bytes);
  else parts.push(bytes.subarray(0, start), "number", bytes.subarray(end));
}

/** @param at where its last line ends, if it is one that is known. @returns where it ends; undefined if something else follows */
function endOfEvent(events: Uint8Array, at: number | undefined): number | undefined {
  if (at === undefined) return undefined;
  if (events[at] === lineFeed) return events[at + 1] === lineFeed ? at + 2 : undefined;
  const isCrLf = events[at] === carriageReturn && events[at + 2] === carriageReturn;
  return isCrLf && events[at + 1] === lineFeed && events[at + 3] === lineFeed ? at + 4 : undefined;
}

/** @returns where the last line of the event that begins at `start` ends; undefined if it is something else */
function addEvent(length: OutputLength, parts: readonly Part[], events: Uint8Array, start: number): number | undefined {
  let at = start;
  let text: Uint8Array | undefined;
  for (const part of parts) {
    const wanted = part === "text" ? text : part;
    if (wanted === "number") at = digitsEnd(events, at);
    else if (wanted === undefined) {
      const end = findQuote(events, at, events.length);
      if (end === notJson) return undefined;
      const characters = countCharacters(events, at, end);
      length.events += characters === 0 ? 0 : 1;
      length.characters += characters;
      text = events.subarray(at, end);
      at = end;
    } else {
      for (let index = 0; index < wanted.length; index++) if (events[at + index] !== wanted[index]) return undefined;
      at += wanted.length;
    }
  }
  return at;
}

/** @param utf8 a JSON string between its quotes. @returns UTF-16 units */
function countCharacters(utf8: Uint8Array, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) {
    const byte = utf8[at] ?? 0;
    // The bytes of a character after its first begin with the bits 10. One of four bytes is two units.
    if (byte < 0x80 || byte >= 0xc0) count += byte >= 0xf0 ? 2 : 1;
    if (byte === backslash) at += utf8[at + 1] === lowerU ? 5 : 1;
  }
  return count;
}

function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while (isDigit(bytes[at] ?? 0)) at++;
  return at;
}
