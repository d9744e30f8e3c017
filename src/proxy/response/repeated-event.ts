import { indexOfBytes } from "../json/bytes.ts";

/** How much output some events have. */
export interface OutputLength {
  /** Events with output. */
  events: number;
  /** UTF-16 units, as in a string's length. */
  characters: number;
}

/**
 * Knows the events of a stream that differ from one that was parsed only in the text of their output, as nearly all do. A
 * look at one takes a tenth of the time that parsing it takes.
 */
export interface RepeatedEvent {
  /**
   * @param json of an event that changes nothing but how much output there is
   * @param text all of its output
   */
  learn(json: Uint8Array, text: string): void;
  /** @param events whole ones @returns undefined unless each is such an event */
  lengthOf(events: Uint8Array): OutputLength | undefined;
}

/** Longer events are rare, and their memory is kept as long as the stream. */
const maxLength = 1024;
/** A stream whose every event has a number of its own repeats none. */
const maxLearned = 8;

const lineFeed = 0x0a;
const quote = 0x22;
const backslash = 0x5c;
const letterE = 0x65;
const dataField = Buffer.from("data: ");
const eventEnd = Buffer.from("\n\n");
/** The Responses API numbers its events. */
const numberName = Buffer.from('"sequence_number":');

/** What is the same in each event. The text is between two of the pieces, and maybe a number between two others. */
interface Pieces {
  pieces: readonly Uint8Array[];
  /** The index of the piece after the text. */
  afterText: number;
}

export function createRepeatedEvent(): RepeatedEvent {
  let known: Pieces | undefined;
  /** How many were learned since one was repeated. */
  let learned = 0;

  return {
    learn(json, text) {
      if (learned === maxLearned || json.length > maxLength || json.includes(backslash)) return;
      const value = Buffer.from(`"${text}"`);
      const at = indexOfBytes(json, value, 0);
      // Where nothing is escaped, the only place is that of the text.
      if (at < 0 || indexOfBytes(json, value, at + 1) >= 0) return;
      learned += 1;
      const before = piecesOf(Buffer.concat([dataField, json.subarray(0, at + 1)]));
      const after = piecesOf(Buffer.concat([json.subarray(at + value.length - 1), eventEnd]));
      known = { pieces: [...before, ...after], afterText: before.length };
    },
    lengthOf(events) {
      if (known === undefined) return undefined;
      const length: OutputLength = { events: 0, characters: 0 };
      let at: number | undefined = 0;
      while (at < events.length) {
        // Its name says nothing that its JSON text does not say.
        const start: number = events[at] === letterE ? events.indexOf(lineFeed, at) + 1 : at;
        at = addEvent(length, known, events, start);
        if (at === undefined) return undefined;
      }
      learned = 0;
      return length;
    },
  };
}

function piecesOf(bytes: Uint8Array): Uint8Array[] {
  const at = indexOfBytes(bytes, numberName, 0);
  const start = at < 0 ? bytes.length : at + numberName.length;
  const end = digitsEnd(bytes, start);
  return end > start ? [bytes.subarray(0, start), bytes.subarray(end)] : [bytes];
}

/** @returns where the event that begins at `start` ends; undefined if it is something else */
function addEvent(
  length: OutputLength,
  { pieces, afterText }: Pieces,
  events: Uint8Array,
  start: number,
): number | undefined {
  let at = start;
  for (let index = 0; index < pieces.length; index++) {
    if (index === afterText) {
      const textEnd = events.indexOf(quote, at);
      const characters = textEnd < 0 ? undefined : countCharacters(events, at, textEnd);
      if (characters === undefined) return undefined;
      length.events += characters === 0 ? 0 : 1;
      length.characters += characters;
      at = textEnd;
    } else if (index > 0) at = digitsEnd(events, at);
    const piece = pieces[index] ?? eventEnd;
    if (!isAt(events, at, piece)) return undefined;
    at += piece.length;
  }
  return at;
}

function digitsEnd(bytes: Uint8Array, from: number): number {
  let at = from;
  while ((bytes[at] ?? 0) >= 0x30 && (bytes[at] ?? 0) <= 0x39) at++;
  return at;
}

function isAt(bytes: Uint8Array, from: number, wanted: Uint8Array): boolean {
  for (let at = 0; at < wanted.length; at++) if (bytes[from + at] !== wanted[at]) return false;
  return true;
}

/** @returns undefined if something is escaped, or is no JSON */
function countCharacters(utf8: Uint8Array, from: number, to: number): number | undefined {
  let count = 0;
  for (let at = from; at < to; at++) {
    const byte = utf8[at] ?? 0;
    if (byte === backslash || byte < 0x20) return undefined;
    // The bytes of a character after its first begin with the bits 10. One of four bytes is two units.
    if (byte < 0x80 || byte >= 0xc0) count += byte >= 0xf0 ? 2 : 1;
  }
  return count;
}
